"Loaders whose number of batches nobody knows: what goes by the fraction of the run is refused or right, and never stands still"
import pytest, torch
from torch import nn
from torch.optim import SGD

from learnkit.callbacks.intervals import EveryCallback
from learnkit.callbacks.clock import StopAfter
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.learner.fit import LimitBatches
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.callbacks.schedules import *
from learnkit.optim.schedule import SchedLin
from learnkit.callbacks.schedules import TorchScheduler
from learnkit.callbacks import lr_find   # it adds the method
from learnkit.loop.events import CancelFit, CancelTrain
from toys import at

batches = [(x, x.sum(1, keepdim=True)) for x in torch.randn(8, 4, 3, generator=torch.Generator().manual_seed(0))]
class Stream:
    "The same batches again and again, without a `len`"
    def __init__(self, n=8): self.n = n
    def __iter__(self): return iter(batches[:self.n])

def mk(dl, cbs=None):
    torch.manual_seed(0)
    learn = Learner(DataLoaders(dl, batches[:2]), nn.Linear(3, 1), nn.MSELoss(), opt_func=SGD, lr=.1, cbs=cbs)
    return learn.remove_cb(learn.progress)
def run(learn, fit):
    with learn.no_logging(): fit(learn)
    return [p.detach().clone() for p in learn.model.parameters()]

BY_FRACTION = dict(
    one_cycle=lambda l,*cbs: l.fit_one_cycle(2, .1, cbs=cbs), flat_cos=lambda l,*cbs: l.fit_flat_cos(2, .1, cbs=cbs),
    sgdr=lambda l,*cbs: l.fit_sgdr(2, 1, .1, cbs=cbs), fine_tune=lambda l,*cbs: l.fine_tune(1, cbs=cbs),
    own=lambda l,*cbs: l.fit(2, cbs=[ParamScheduler({'lr': SchedLin(.1, 0.)}), *cbs]),
    ema=lambda l,*cbs: l.fit(2, cbs=[EMACallback(.5, start=.5), *cbs]),
    every=lambda l,*cbs: l.fit(2, cbs=[EveryCallback(lambda l: None, '0.25dur'), *cbs]))

@pytest.mark.parametrize('name', BY_FRACTION)
def test_raises_before_a_step(name):
    "A schedule would stand still for the first epoch, an average would never start: both say so before anything is trained"
    learn = mk(Stream())
    before = [p.detach().clone() for p in learn.model.parameters()]
    with pytest.raises(ValueError, match=r'has no `len`.*LimitBatches'): run(learn, BY_FRACTION[name])
    if name!='every': assert all(map(torch.equal, before, learn.model.parameters()))

@pytest.mark.parametrize('name', BY_FRACTION)
def test_a_limit_makes_it_known(name):
    "With `LimitBatches` the run is that of a loader with a length, bit for bit"
    f = BY_FRACTION[name]
    assert all(map(torch.equal, run(mk(Stream()), lambda l: f(l, LimitBatches(8))), run(mk(batches), f)))

@pytest.mark.parametrize('name', BY_FRACTION)
def test_a_second_fit_knows(name):
    "The first fit counted the batches"
    f = BY_FRACTION[name]
    def twice(l): l.fit(1); f(l)
    assert all(map(torch.equal, run(mk(Stream()), twice), run(mk(batches), twice)))

@pytest.mark.parametrize('cbs', [lambda: TorchScheduler(lambda o: torch.optim.lr_scheduler.StepLR(o, 3)), lambda: EMACallback(.5), lambda: EMACallback(.5, start=3),
                                 lambda: StopAfter('5ba'), lambda: EveryCallback(lambda l: None, '3ba'), lambda: EMACallback(.5, start=0.)])
def test_steps_are_always_known(cbs):
    "What counts steps needs no length"
    assert all(map(torch.equal, run(mk(Stream(), cbs()), lambda l: l.fit(2)), run(mk(batches, cbs()), lambda l: l.fit(2))))

def test_warns_at_once_that_it_may_never_end(capsys):
    "In the first epoch of the first fit, unless an amount says how long it is"
    class Ended(Exception): pass
    def endless():
        while True: yield from batches
    def end(cb):
        if cb.learn.train_iter==20: raise Ended
    def said(f):
        try: f()
        except Ended: pass
        return capsys.readouterr().out.count('has no `len`, so this epoch ends with the data')
    learn = mk(endless)
    assert said(lambda: learn.fit(1, cbs=at('after_batch', end)))==1
    assert said(lambda: learn.profile(cbs=at('after_batch', end)))==1
    assert said(lambda: learn.profile(n_batches=3))==said(lambda: learn.fit('5ba'))==said(lambda: mk(batches).fit(1))==0
    learn = mk(Stream())
    assert [said(lambda: learn.fit(2)) for _ in range(2)]==[1,0]
    with learn.no_logging(): assert said(lambda: mk(Stream()).validate())==0

def stop_after(n): return at('after_batch', lambda cb: cb.learn.train_iter==n and cb.learn.stop())
def cancel_after(n, cancel):
    def leave(cb):
        if cb.learn.training and cb.learn.train_iter==n: raise cancel
    return at('after_batch', leave)
CUT = dict(amount=lambda l: l.fit('11ba'), limit=lambda l: l.fit(1, cbs=LimitBatches(3)), stop=lambda l: l.fit(2, cbs=stop_after(3)),
           train=lambda l: l.fit(1, cbs=cancel_after(3, CancelTrain)), fit=lambda l: l.fit(2, cbs=cancel_after(3, CancelFit)), lr_find=lambda l: l.lr_find(num_it=6, show_plot=False))

@pytest.mark.parametrize('name', CUT)
def test_an_epoch_that_was_cut_counts_nothing(name):
    "A schedule of the next fit took the length of the epoch that was cut for that of the data"
    learn = mk(Stream())
    with learn.no_logging():
        CUT[name](learn)
        with pytest.raises(ValueError, match='has no `len`'): learn.fit_one_cycle(2)

@pytest.mark.parametrize('name', CUT)
def test_a_whole_epoch_still_counts_after_one_that_was_cut(name):
    def fits(l): l.fit(1); CUT[name](l); l.fit_one_cycle(2)
    assert all(map(torch.equal, run(mk(Stream()), fits), run(mk(batches), fits)))

def test_other_data_have_another_length():
    learn = mk(Stream(4))
    run(learn, lambda l: l.fit(1))
    learn.dls = DataLoaders(Stream(8), batches[:2])
    with pytest.raises(ValueError, match='has no `len`'): run(learn, lambda l: l.fit_one_cycle(2))
