"""Runs put together at random, stopped by Ctrl-C at random moments, trained batch by batch or into the middle of one, looked at, and gone on with, end as those
that nobody stopped; with a `CheckpointCallback` beside it or without.

    python tests/faults/test_paused.py 500            so many runs; prints those that end otherwise
    python tests/faults/test_paused.py 1 --first 123  one of them again
"""
import os, random, signal, sys, tempfile, warnings
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import pytest, torch
from learnkit.all import Callback, CheckpointCallback, Pausable
from test_resume import end, equal, halves, learner
from test_resume_fuzz import callbacks, loaders, moments, opts, policies, settings, sweep
from toys import few, learner as small, slow

pytestmark = few(10_000, 2)   # of the slow cases; all with LEARNKIT_SWEEP=1

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
    elif how in untils: learn.go_on(until=how)
    else: learn.go_on(1 if how=='step' else 2)

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
        for e in (straight, other):
            e['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
            for row in e['cbs'].get('validate_every', {}).get('history', ()): row.pop('time')
        return [k for k in straight if not equal(straight[k], other[k])]

@pytest.mark.skipif(os.name!='posix', reason='signals')
@pytest.mark.parametrize('seed', [3, *slow(*range(8))])
def test_gone_on_with(seed): assert not differs(seed), drawn(seed)

def paused(*cbs, **kw):
    "A run of two epochs that stands after its second batch"
    learn = small(3, cbs=[Pausable(), *cbs], **kw)
    with pytest.raises(KeyboardInterrupt), learn.no_bar(), learn.no_logging(): learn.fit(2, cbs=press('after_pred', 2))
    return learn

def test_what_is_seen_where_it_stands():
    learn = paused()
    assert 'stands in epoch 0, after 2 of its batches' in repr(learn.paused)
    assert learn.go_on(until='after_loss')['train_iter']==2 and learn.xb[0].shape==(4, 4) and learn.loss_grad.requires_grad
    loss = learn.loss.item()
    assert learn.go_on(1)==dict(epoch=0, iter=2, train_iter=3, loss=loss)
    assert learn.go_on(1)['epoch']==1 and learn.recorder.history['epoch']==[0]
    with learn.no_bar(), learn.no_logging(): assert learn.go_on() is None
    assert learn.paused is None and learn.train_iter==6

@pytest.mark.parametrize('args,words', [(dict(batches=0), 'batches'), (dict(batches=1, until='after_loss'), 'one of them'), (dict(until='after_epoch'), 'within a batch'), (dict(until='nonsense'), 'within a batch')])
def test_what_cannot_be_gone_on_to_is_refused(args, words):
    learn = paused()
    with pytest.raises(ValueError, match=words): learn.go_on(**args)
    assert learn.paused is not None

def test_what_is_paused_is_let_go_by_the_next_fit():
    learn = paused()
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    with pytest.raises(RuntimeError, match='no fit stands'): learn.go_on()
    with pytest.raises(ValueError, match='keeps no files'): learn.fit(1, resume='auto')

def uninterrupted(seed):
    try: return differs(seed)
    except KeyboardInterrupt as e:
        if e.args: raise
        return ['a Ctrl-C of its own was not taken']

if __name__=='__main__': sweep(uninterrupted, drawn, __doc__)
