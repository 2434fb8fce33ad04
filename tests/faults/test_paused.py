"""Runs put together at random, stopped by Ctrl-C at random moments, trained batch by batch or into the middle of one, looked at, and gone on with, end as those
that nobody stopped; with a `CheckpointCallback` beside it or without.

    python tests/faults/test_paused.py 500            so many runs; prints those that end otherwise
    python tests/faults/test_paused.py 1 --first 123  one of them again
"""
import argparse, builtins, os, random, signal, sys, tempfile, warnings
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import pytest, torch
from torch import nn
from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, Pausable
from learnkit.loop.run import null_logger
from test_resume import end, equal, halves, learner
from test_resume_fuzz import callbacks, loaders, moments, opts, policies, settings
from toys import learner as toy, slow

untils = 'before_batch after_pred after_loss after_backward before_step after_step'.split()

def drawn(seed):
    "What a run is made of, and what is done while it stands; all of it follows from `seed`"
    cfg,r = settings(seed),random.Random(f'paused/{seed}')
    if cfg['policy']=='fine_tune': cfg['policy'] = 'fit'   # it is two fits
    acts = [[r.choice(['step', 'step', 'two', 'preds', *untils]) for _ in range(r.choice([0, 1, 2, 3]))] for _ in cfg['ends']]
    return {**cfg, 'ends':[(r.choice(moments[:15]), n) for _,n in cfg['ends']], 'acts':acts, 'files':r.random()<.5}

def press(event, n):
    "Ctrl-C when `event` happens for the `n`th time"
    seen = []
    def send(self, **kwargs):
        if self.learn.mode!='fit': return
        seen.append(event)
        if len(seen)==n: signal.raise_signal(signal.SIGINT)
    cb = Callback(**{event:send})
    cb.order,cb.observes = 10_000,True
    return cb

def made(path, cfg):
    learn = learner(path, [callbacks[k] for k in cfg['cbs']], every=cfg['every'], data=lambda: loaders[cfg['data']](cfg['workers']), opt=opts[cfg['opt']])
    if not cfg['files']: learn.remove_cb(CheckpointCallback)
    learn.splitter = halves
    return learn

def act(learn, how):
    if how=='preds': learn.get_preds()
    elif how in untils: learn.step(until=how)
    else: learn.step(1 if how=='step' else 2)

def stopped(path, cfg):
    learn,ends = made(path, cfg),[*cfg['ends']]
    try: policies[cfg['policy']](learn, 3, cbs=[Pausable(), press(*ends[0])])
    except KeyboardInterrupt: pass
    for acts,then in zip(cfg['acts'], [*ends[1:], None]):
        if learn.paused is None: break
        torch.rand(3), random.random()   # what somebody looks at may draw
        for how in acts:
            if learn.paused is not None: act(learn, how)
        if learn.paused is None: break
        try: learn.go_on(cbs=[press(*then)] if then else None)
        except KeyboardInterrupt: pass
    while learn.paused is not None: learn.go_on()   # Ctrl-C came as late as in `after_fit`
    return learn

def differs(seed):
    "What a run that was stopped has at its end otherwise; None if it could not be made"
    cfg = drawn(seed)
    with tempfile.TemporaryDirectory() as tmp, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try: learn = made(Path(tmp)/'a', cfg); policies[cfg['policy']](learn, 3)
        except ValueError: return None   # callbacks that refuse one another
        straight,other = end(learn),end(stopped(Path(tmp)/'b', cfg))
        for e in (straight, other): e['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
        return [k for k in straight if not equal(straight[k], other[k])]

@pytest.mark.skipif(os.name!='posix', reason='signals')
@pytest.mark.parametrize('seed', [3, *slow(*range(8))])
def test_gone_on_with(seed): assert not differs(seed), drawn(seed)

if __name__=='__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('n', type=int, nargs='?', default=100)
    p.add_argument('--first', type=int, default=0)
    args = p.parse_args()
    torch.set_num_threads(1)
    done,bad,say = 0,0,print
    builtins.print = lambda *a,**k: None
    for seed in range(args.first, args.first+args.n):
        try: odd = differs(seed)
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt) and e.args: raise
            odd = [f'{type(e).__name__}: {e}', *getattr(e, '__notes__', ())]
        done,bad = done+(odd is not None),bad+bool(odd)
        if odd: say(seed, odd, drawn(seed), flush=True)
    say(f'{done} runs, {bad} of them end otherwise')
    sys.exit(bool(bad))
