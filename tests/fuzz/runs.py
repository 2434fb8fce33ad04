"""Trains one model twice, in ways that must have equal results: with and without observers, by fast paths and by
their slow paths, with whole batches and micro-batches; or without interruption, and interrupted at some events and
resumed.

    python tests/fuzz/runs.py --minutes 20             prints its seed and the kinds of runs; a script for each failure
    python tests/fuzz/runs.py --minutes 20 --seed 7    different runs
    python tests/fuzz/runs.py --case 7 123             run number 123 of seed 7 again
"""
import io, random, sys, tempfile, warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'), str(root/'tests/faults')]
import torch
from hunt import hunt, main

# what is drawn

models = ['nn.Linear(4, 1)', 'nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.2), nn.Linear(8, 1))', 'nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 1))']
steady = [models[0], models[2]]   # whose parts do what the whole does
optimizers = ['torch.optim.SGD', 'torch.optim.AdamW', 'torch.optim.RMSprop', 'torch.optim.Adagrad', 'torch.optim.NAdam', 'partial(torch.optim.SGD, momentum=.9, nesterov=True)',
              'partial(torch.optim.Adam, amsgrad=True, weight_decay=.1)', 'partial(torch.optim.AdamW, foreach=True)']
own = '''class Own(torch.optim.SGD):
    @functools.wraps(torch.optim.SGD.step)
    def step(self, closure=None): [p.grad.sign_() for pg in self.param_groups for p in pg['params'] if p.grad is not None]; super().step(closure)'''
callbacks = ['GradientClip(.5)', 'GradientClip(value=.1)', 'GradientAccumulation(8)', 'MicroBatch(2)', 'EMACallback(.9)', 'SkipNaN()', 'SkipNaN(wait=False)', "RollBackOnNaN('2ba')",
             "ReduceLROnPlateau('train_loss')", "ValidateEvery('2ba')", 'MixUp(.4)', 'StopAfter("7ba")', 'LimitBatches(3)', 'StepsPerEpoch(4)', 'ShortEpochCallback(.5)', 'ParamScheduler(one_cycle(.1))',
             'TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=2))', "MixedPrecision('bf16')", "MixedPrecision('fp16')", 'BnFreeze()', 'ReplayOnOOM(2)', 'Prefetch()', 'TerminateOnNaNCallback()']
observers = ['ActivationStats()', 'OptimizerMonitor()', 'LossMonitor()', 'FetchPredsCallback()', 'ItemIndices()', "EveryCallback(lambda learn: learn.get_preds(), '3ba')",
             "EveryCallback(lambda learn: learn.validate(), '1ep')", "CSVLogger(folder/'log.csv')", "JsonLogger(folder/'log.jsonl')", 'SpeedMonitor()', 'CheckShortCuts()', "Evaluator('more', valid, every='3ba')"]
kinds = dict(observers=4, shortcuts=4, parts=2, resume=1)

def draw(seed, n):
    "The kind of run number `n`, and its script; of one that is resumed its seed"
    r = random.Random(f'{seed}/{n}')
    kind = r.choice([k for k,m in kinds.items() for _ in range(m)])
    if kind=='resume': return kind,r.randrange(10**9)
    opt = r.choice([*optimizers, *['Own']*(kind=='shortcuts')])
    many = r.choice([0, 1, 2, 3])
    cbs,more = r.sample(callbacks, many),['CheckShortCuts()']
    if kind=='observers': more = r.sample(observers, r.choice([1, 2, 3]))
    if kind=='parts': cbs,more = r.sample(['GradientClip(.5)','ParamScheduler(one_cycle(.1))','EMACallback(.9)'], many%3),[r.choice(['MicroBatch(2)','MicroBatch(n=3)','ReplayOnOOM(2)','ReplayOnOOM(1)'])]
    if kind=='parts': opt = r.choice(['torch.optim.SGD', optimizers[5]])   # rounding stays rounding; in float64, as ten steps made 4e-5 of it in float32
    return kind,f'''import functools, tempfile, torch; from functools import partial; from pathlib import Path; from torch import nn; from torch.utils.data import DataLoader, TensorDataset; from learnkit.all import *
{'torch.set_default_dtype(torch.float64)' if kind=='parts' else ''}
{own if opt=='Own' else 'folder = Path(tempfile.mkdtemp())'}
def run(*more):
    torch.manual_seed({r.randrange(99)}); x = torch.randn(20, 4); y = x.sum(1, keepdim=True)
    global valid; train,valid = DataLoader(TensorDataset(x, y), {r.choice([4, 6])}, shuffle={r.random()<.7}, drop_last={r.random()<.3}), DataLoader(TensorDataset(x[:10], y[:10]), 4)
    learn = Learner(DataLoaders(train, valid), {r.choice(steady if kind=='parts' else models)}, nn.MSELoss(), {opt}, lr={r.choice([.05, .01])}, metrics={r.choice(['None', 'mae'])})
    with learn.no_logging(), learn.no_bar(): learn.fit({r.choice([1, 2, 3])}, cbs=[{', '.join(cbs)}, *more()])
    return learn
one,two = run(list),run(lambda: [{', '.join(more)}])
'''.replace('run(*more)', 'run(more)').replace('cbs=[, ', 'cbs=[')

# a run, and what is wrong with it

def differs(one, two, tol=0):
    "What two Learners that were trained have otherwise; the second may have more columns in its history"
    a,b = (list(l.model.state_dict().values()) for l in (one, two))
    odd = [] if all(torch.allclose(p, q, rtol=tol, atol=tol, equal_nan=True) for p,q in zip(a, b)) else ['weights']
    if one.train_iter!=two.train_iter: odd.append('batches')
    if [h['lr'] for h in one.opt.hypers]!=[h['lr'] for h in two.opt.hypers]: odd.append('rates')
    s,t = (l.opt.opt.state_dict()['state'] for l in (one, two))
    if not all(torch.allclose(torch.as_tensor(s[i][k]).double(), torch.as_tensor(t[i][k]).double(), rtol=tol, atol=tol, equal_nan=True) for i in s for k in s[i] if s[i][k] is not None): odd.append('optimizer')
    first,more = one.recorder.history,[r for r in two.recorder.history if any(k.endswith('_loss') and not k.startswith('more') and r[k] is not None for k in r)]   # not those of the Evaluator
    alike = len(first)==len(more) and all(repr(q[k])==repr(r.get(k)) for q,r in zip(first, more) for k in q if k!='time')
    return odd if tol or alike else [*odd, 'rows']

def run(kind, script):
    "How it ended, and what is wrong (or None)"
    if kind=='resume':
        import test_resume_fuzz
        odd = test_resume_fuzz.differs(script)
        return ('refused' if odd is None else 'resumed'),odd and f'{", ".join(odd)} differ: python tests/faults/test_resume_fuzz.py 1 --first {script}'
    names = {'folder':Path(tempfile.mkdtemp()), '__name__':'__main__'}
    try: exec(script, names)
    except ValueError as e: return 'refused',None if str(e).strip() else 'an error without a sentence'   # callbacks that raise if both are added
    finally: torch.set_default_dtype(torch.float32)
    odd = differs(names['one'], names['two'], tol=1e-9*(kind=='parts'))
    return 'alike',f'{", ".join(odd)} differ' if odd else None

def attempt(kind, script):
    "Run it without a word; returns how it ended, and the fault"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try: return run(kind, script)
        except Exception as e: return 'error',f'{type(e).__name__}: {e}'

def fuzz(seed, **kwargs): return hunt(draw, attempt, seed, **kwargs)
def again(seed, i): kind,script = draw(seed, i); print(script, run(kind, script), sep='\n')
if __name__=='__main__': main(fuzz, again)
