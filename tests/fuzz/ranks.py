"""Trains one model in two processes, of which one has a fault: in the end both have the same weights, or both raise
an error that names the reason.

    python tests/fuzz/ranks.py --minutes 20             prints its seed and how runs ended; a script for each failure
    python tests/fuzz/ranks.py --minutes 20 --seed 7    different runs
    python tests/fuzz/ranks.py --case 7 123             run number 123 of seed 7 again

Each run is a short script, which is printed for a failure: `torchrun --nproc-per-node=2 script.py` shows it again. It
draws a model, up to three callbacks that act on training, and what one process does at some event: a NaN, another
learning rate, noise, an error, a Cancel, a pause.
"""
import io, json, multiprocessing, os, random, sys, tempfile, time, traceback, warnings
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests')]
import torch
from torch import distributed as dist
from hunt import hunt, main
from learnkit.loop.events import event

# what is drawn

models = ['nn.Sequential(nn.Linear(4,8), nn.ReLU(), nn.Linear(8,1))', 'nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.2), nn.Linear(8,1))',
          'nn.Sequential(nn.Linear(4,8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8,1))']
optimizers = ['torch.optim.SGD', 'torch.optim.AdamW', 'partial(torch.optim.SGD, momentum=.9)']
callbacks = ['GradientClip(.5)', 'GradientAccumulation(8)', 'MicroBatch(2)', 'EMACallback(.9)', 'SkipNaN()', 'SkipNaN(wait=False)', "RollBackOnNaN('1ba')", "RollBackOnNaN('3ba')", "*self_healing(window=4, every='2ba')",
             "ReduceLROnPlateau('train_loss', min_delta=1.)", 'ReduceLROnPlateau(lambda learn: learn.loss.item(), comp="min", min_delta=1.)', "EarlyStoppingCallback('train_loss', patience=2)",
             "SaveModelCallback('train_loss')", 'SaveModelCallback(every_epoch=True)', "ValidateEvery('2ba')", "ValidateEvery('.01s')", 'MixUp(.4)', "CheckpointCallback('2ba', folder=folder)",
             "CheckpointCallback(best='train_loss', folder=folder)", "StopAfter('.3s')", "StopAfter('7ba')", 'LimitBatches(3)', 'StepsPerEpoch(4)', 'OverfitBatches(2)', 'ShortEpochCallback(.5)',
             'ParamScheduler(one_cycle(.1))', 'TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=2))', "MixedPrecision('bf16')", 'TerminateOnNaNCallback()', 'ReplayOnOOM(2)', 'BnFreeze()',
             "Cycles('2ba')", 'BatchEvents()', "EveryCallback(lambda learn: learn.get_preds(), '4ba')", "Evaluator('more', valid, every='3ba')", 'LossMonitor()', 'Prefetch()', 'ItemIndices()',
             'ActivationStats()', 'OptimizerMonitor()', 'FetchPredsCallback()', 'SanityCheck()']
trainers = ['']*6 + ['VirtualShards(2)', 'FullyShard(8)', 'DistributedTrainer(find_unused_parameters=True, timeout=10)']
_in_training = [e for e in [*event][[*event].index('before_epoch'):[*event].index('after_epoch')+1] if e in event.declared and not e.startswith('after_cancel')]
scopes = dict(CancelBatch=('before_batch','before_pred','after_pred','after_loss','before_backward','after_backward','before_step','after_step','after_zero_grad'), CancelBackward=('before_backward',),
              CancelStep=('before_step',), CancelTrain=('before_batch','after_loss','after_batch'), CancelValid=('before_validate',), CancelEpoch=('before_train','before_batch','after_train'),
              CancelFit=('before_epoch','before_batch','after_step','after_batch','after_epoch'))
faults = {   # what one process does, and at which events
    'nothing':    [(e, 'pass') for e in ('before_batch','after_step')],
    'nan':        [('after_pred', 'self.learn.pred = self.learn.pred*float("nan")'), ('after_loss', 'self.learn.loss = self.learn.loss*float("nan")'),
                   ('before_step', '[p.grad.mul_(float("nan")) for p in self.learn.model.parameters() if p.grad is not None]')],
    'rate':       [(e, 'self.learn.opt.set_hyper("lr", .01)') for e in ('before_batch','after_step','after_batch','after_epoch','before_train')],
    'noise':      [(e, '[p.data.add_(.1*torch.randn(p.shape)) for p in self.learn.model.parameters() if not hasattr(p, "placements")]') for e in ('before_batch','after_step','after_train','after_epoch')],
    'random':     [(e, 'torch.randn(3)') for e in ('before_batch','after_pred','after_epoch')],
    'error':      [(e, 'raise ArithmeticError("that is too much")') for e in _in_training],
    'memory':     [(e, 'raise torch.OutOfMemoryError("out of memory")') for e in ('after_pred','before_step')],
    'stop':       [(e, 'self.learn.stop("enough")') for e in _in_training],
    'slow':       [(e, 'time.sleep(.2)') for e in ('before_batch','after_step','after_batch','before_validate','after_epoch')],
    'predicts':   [(e, 'self.learn.get_preds()') for e in ('after_batch','after_epoch')],
    **{k:[(e, f'raise {k}') for e in es] for k,es in scopes.items()}}

def draw(seed, n):
    "The script of run number `n`, and what its fault is"
    r = random.Random(f'{seed}/{n}')
    what = r.choice([*faults, 'nan', 'nan', 'rate', 'error'])
    ev,does = r.choice(faults[what])
    trainer = r.choice(trainers)
    cbs = ', '.join([*filter(None, [trainer]), *r.sample(callbacks, r.choice([0, 1, 2, 2, 3]))])
    at = f'self.learn.training and self.learn.train_iter=={r.randrange(9)}' if ev in event.in_batch else f'self.learn.epoch=={r.randrange(3)}'
    always = r.random()<.2 and what in ('nan','rate','slow','random')
    when = f'rank_distrib()=={r.randrange(2)} and self.learn.mode=="fit" and self.learn.training' if always else f'rank_distrib()=={r.randrange(2)} and self.learn.mode=="fit" and {at}'
    return f'''import time, tempfile, torch; from functools import partial; from torch import nn; from torch.utils.data import DataLoader, TensorDataset; from learnkit.all import *
torch.set_num_threads(1); torch.manual_seed(0); x = torch.randn(32, 4); y = x.sum(1, keepdim=True); folder = globals().get('folder') or tempfile.mkdtemp()
train,valid = DataLoader(TensorDataset(x, y), {r.choice([2, 4])}, shuffle={r.random()<.7}), DataLoader(TensorDataset(x[:10], y[:10]), 4)
class Fault(Callback):
    order = {r.choice([0, 0, 9, 30, 70, 101])}
    def {ev}(self):
        if {when}: {does}
learn = Learner(DataLoaders(train, valid), {r.choice(models)}, nn.MSELoss(), {r.choice(optimizers)}, lr=.05, path=folder)
with learn.no_logging(), learn.no_bar(): learn.fit(3, cbs=[Fault(), {cbs}])
''',what

# a run

def _work(rank, store, folder, script, pipe):
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    warnings.simplefilter('ignore')
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=2, timeout=timedelta(seconds=20))
    names,res = dict(folder=folder),None
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            exec(script, names)
            learn = names['learn']
            with torch.no_grad(): weights = [(p.full_tensor() if hasattr(p, 'full_tensor') else p).flatten().tolist() for p in learn.model.parameters()]
            kept = [v for s in learn.opt.opt.state_dict()['state'].values() for v in s.values() if v is not None]   # momenta, averages, and how many steps were made
            kept = [(v.full_tensor() if hasattr(v, 'full_tensor') else torch.as_tensor(v)).flatten().tolist() for v in kept]
            rows = [{k:v for k,v in row.items() if k!='time'} for row in learn.recorder.history]
            res = dict(weights=weights, rates=[h['lr'] for h in learn.opt.hypers], optimizer=kept, iter=learn.train_iter, epoch=learn.epoch, stopped=learn.stop_reason, rows=repr(rows))
        except BaseException as e:
            res = dict(error=type(e).__name__, said=str(e), trace=''.join(traceback.format_exception(e))[-3000:])
    pipe.send((rank, res))
    os._exit(0)

def run(script, limit=120):
    "What became of it in both processes; None of one that did not end"
    fork = multiprocessing.get_context('fork')
    got,sent = fork.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as d:
        ps = [fork.Process(target=_work, args=(r, f'{d}/store', d, script, sent)) for r in range(2)]
        for p in ps: p.start()
        res,end = {},time.monotonic()+limit
        while len(res)<2 and got.poll(max(0, end-time.monotonic())): res.update([got.recv()])
        for p in ps: p.kill(); p.join()
    return res.get(0),res.get(1)

# judged

def judge(one, two, what):
    "How it ended, and what is wrong with it (or None)"
    if one is None or two is None: return 'hangs','a process did not end'
    if 'error' in one and 'error' in two:
        kinds = {one['error'],two['error']}
        raw = [o['said'] for o in (one,two) if o['error'] in ('RuntimeError','DistBackendError','DistNetworkError') and any(w in o['said'] for w in ('gloo','Connection','pair','Timed out'))]
        if raw: return 'error',f'an error of PyTorch that says nothing: {raw[0][:200]}'
        if kinds=={'ValueError'} and one['said']==two['said']: return 'refused',None
        if any('was raised for one of' in o['said'] for o in (one,two)): return 'refused',None   # in a shard
        if kinds & {'TypeError','NameError','AttributeError'}: return 'error',f'an error of the script, or of ours: {one["said"][:300]} / {two["said"][:300]}'
        if any(not o['said'].strip() for o in (one,two)): return 'error','an error without a sentence'
        if what in ('nothing','slow','random','stop',*scopes): return 'error',f'that is no error, but: {one["error"]}: {one["said"][:300]} / {two["error"]}: {two["said"][:300]}'
        return ('apart' if 'have diverged' in one['said'] else 'error'),None
    if 'error' in one or 'error' in two: return 'half','one of them failed, and the other did not hear of it: '+next(o['error']+': '+o['said'] for o in (one,two) if 'error' in o)[:300]
    odd = [k for k in one if repr(one[k])!=repr(two[k])]   # NaN too
    return 'alike',f'{", ".join(odd)} differ' if odd else None

def fuzz(seed, **kwargs): return hunt(lambda *at: draw(*at)[::-1], lambda what, script: judge(*run(script), what), seed, **kwargs)
def again(seed, i):
    script,what = draw(seed, i)
    res = run(script)
    print(script)
    for o in res: print(o and {k:v for k,v in o.items() if k!='trace'}, o and o.get('trace', ''))
    print(judge(*res, what))
if __name__=='__main__': main(fuzz, again)
