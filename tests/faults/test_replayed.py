"""A replay of any step of a random run reproduces its batch, loss and weights bit for bit and changes no file of the
run; a branch that changes nothing ends like its parent.

    python tests/faults/test_replayed.py 500            that many runs; prints those that differ
    python tests/faults/test_replayed.py 1 --first 123  repeats one of them
"""
import random, sys, tempfile, warnings
from functools import partial
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import pytest, torch
from learnkit.all import Callback, Run
from learnkit.recovery.file import list_checkpoints, remove_checkpoint
from test_resume import end, equal, halves, learner
from test_resume_fuzz import callbacks, loaders, opts, passes, passes_opts, settings, all_policies, sweep, with_passes
from test_resume_more import dies
from toys import few, slow

pytestmark = few(10_000, 2)   # of the slow cases; all with LEARNKIT_SWEEP=1

counted = dict(runs=0, steps=0, losses=0, branches=0)

def draw_settings(seed):
    "The settings of a run, the checkpoints to remove and the steps to replay, all drawn from `seed`"
    cfg,r = settings(seed),random.Random(f'replayed/{seed}')
    if cfg['policy']=='fine_tune': cfg['policy'] = 'fit'   # it is two fits
    # a warning tells that a stream after an incomplete epoch cannot be resumed exactly
    if cfg['data']=='position': cfg['cbs'] = [k for k in cfg['cbs'] if k!='limit']
    cfg = with_passes(cfg, seed)
    return {**cfg, 'resumed':random.Random(f'resumed/{seed}').choice([None, None, 5, 11]), 'kept':r.choice([1., .5, .2]), 'steps':[r.random() for _ in range(3)], 'left':r.random(), 'draw':r}

def make_learner(path, cfg):
    learn = learner(path, [{**callbacks, **passes}[k] for k in cfg['cbs']], every=cfg['every'], data=lambda: loaders[cfg['data']](cfg['workers']), opt={**opts, **passes_opts}[cfg['opt']], keep=None)
    learn.splitter = halves
    return learn

def on_cpu(model): return {k:v.detach().to('cpu', copy=True) for k,v in model.state_dict().items()}

class Record(Callback):
    "Records each training batch, its loss, and the weights after it"
    order,acts = 10_000,'nothing'
    def __init__(self): self.seen = []
    def after_batch(self):
        if self.training and self.learn.mode=='fit': self.seen.append((getattr(self.learn.current_run, 'batch', None), float(self.learn.loss), on_cpu(self.model)))

def files(path): return {p:(p.stat().st_mtime_ns, p.stat().st_size) for p in Path(path).rglob('*')}
def alike(a, b):
    try: return equal(a, b)
    except RuntimeError: return False   # of other shapes

def replayed(path, cfg, step, seen):
    "What differs in a replay of `step`"
    learn,before = make_learner(path, cfg),files(path)
    # without a checkpoint the replay starts at the beginning, with the random numbers of now
    if any(int(p.stem.split('-')[1])<=step for p in list_checkpoints(Run(path).folder)): torch.rand(3), random.random()
    at = learn.replay(path, step, fit=partial(all_policies[cfg['policy']], learn, 3))
    batch,left_out = learn.batch,learn.train_iter!=step
    learn.resume(1)
    counted['steps'] += 1; counted['losses'] += at['equal']
    odd = [] if at['equal']==at['compared'] else ['losses']
    if not left_out: odd += [k for k,a,b in (('batch', batch, seen[step][0]), ('loss', float(learn.loss), seen[step][1])) if not alike(a, b)]
    now = learn.paused.state['model'] if learn.paused else on_cpu(learn.model)
    return odd + ['weights']*(not alike(now, seen[step][2])) + ['files']*(files(path)!=before)

def trained(path, cfg, record):
    "Fit, killed once and resumed if `cfg['resumed']` is a step; return the Learner"
    learn,fit = make_learner(path, cfg),all_policies[cfg['policy']]
    if cfg['resumed'] is None: fit(learn, 3, cbs=record); return learn
    try: fit(learn, 3, cbs=[record, dies('after_step', cfg['resumed'])])
    except SystemError: pass
    torch.seed(), random.seed()
    learn,begun = make_learner(path, cfg),list_checkpoints(path/'checkpoints'/'fit-1')
    del record.seen[int(begun[0].stem.split('-')[1]) if begun else 0:]
    fit(learn, 3, cbs=record, resume='auto')
    return learn

def differs(seed):
    "What differs, by steps; None if the callbacks are incompatible"
    cfg = draw_settings(seed)
    with tempfile.TemporaryDirectory() as tmp, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        path,record = Path(tmp)/'a',Record()
        try: learn = trained(path, cfg, record)
        except ValueError: return None   # incompatible callbacks
        run = Run(path)
        counted['runs'] += 1
        for p in list_checkpoints(run.folder)[1:]:
            if cfg['draw'].random()>cfg['kept']: remove_checkpoint(p)
        steps = sorted({int(s*run.train_iter) for s in cfg['steps']})
        odd = {s:o for s in steps if (o := replayed(path, cfg, s, record.seen))}
        other,step = make_learner(path, cfg),int(cfg['left']*run.train_iter)
        other.branch(path, step, Path(tmp)/'b', fit=partial(all_policies[cfg['policy']], other, 3))
        counted['branches'] += 1
        one,two = end(learn),end(other)
        for e in (one, two): e['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
        return [*odd.items(), *[f'branch: {k}' for k in one if not alike(one[k], two[k]) and not (k in ('model','cbs') and 'best' in cfg['cbs'])]]   # which may be of an epoch before the branch

@pytest.mark.parametrize('seed', [1, *slow(*range(2, 10))])
def test_replayed(seed): assert not differs(seed), draw_settings(seed)

if __name__=='__main__':
    try: sweep(differs, draw_settings, __doc__)
    finally: sys.stdout.write(f'{counted}\n')
