"""What the loop works on before anything has run, and how callbacks wrap the work on a batch"""
import os, signal
import pytest, torch
from torch.utils.data import DataLoader
from learnkit.data.loaders import DataLoaders
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch
from toys import at, batches, learner, throw

def test_before_the_first_run():
    learn = learner(3, 2)
    assert (learn.epoch, learn.n_epoch, learn.current_run.start_epoch, learn.current_run.duration)==(0, 1, 0, None)
    assert (learn.iter, learn.n_iter, learn.train_iter, learn.pct_train)==(None, None, 0, 0.)
    assert (learn.batches, learn.dl, learn.current_run.output_reader, learn.current_run.output, learn.current_run.output_loss, learn.stop_reason)==(None,)*6
    assert [*learn._epochs()]==[0] and learn.mode is None and not learn.training and learn.current_run.outer is None

class Wraps(Callback):
    "Says when it begins and ends to work on a batch"
    def __init__(self, name, heard, order=0, modes=None): self.who,self.heard,self.order,self.modes = name,heard,order,modes
    def wrap(self, what, do):
        if what!='batch': return do
        def work():
            self.heard.append(self.who)
            do()
            self.heard.append(self.who.upper())
        return work

def test_a_batch_by_hand_before_any_run():
    "fastai's notebooks do so; there was no `do_fetched` yet"
    learn = learner()
    x,y = next(iter(learn.dls.train))
    learn.one_batch(0, (x, y))
    assert torch.equal(learn.x, x) and torch.equal(learn.pred, learn.model(x)) and learn.loss==learn.loss_func(learn.pred, y)

def test_callbacks_wrap_the_work_on_a_batch():
    "The later ones outside; only those that are switched on, and run in this mode"
    heard = []
    a,b,off,other = Wraps('a', heard), Wraps('b', heard, order=3), Wraps('off', heard), Wraps('other', heard, modes='validate')
    off.run = False
    learn = learner(1, 0, cbs=[b, a, off, other, at('before_pred', lambda cb: heard.append('-'))])
    learn.fit(1)
    assert heard==['b','a','-','A','B']
    heard.clear()
    off.run = False   # a fit has put it on
    learn.validate(dl=learn.dls.train)
    assert heard==['b','other','a','-','A','OTHER','B'] and not off.run
    heard.clear()
    with learn.removed_cbs([a, b, off, other]): learn.fit(1)
    assert heard==['-'] and learn.current_run.do_batch==learn._do_one_batch

def test_each_phase_is_wrapped_anew():
    "A phase that went on with what the one before had wrapped would wrap it once more"
    heard = []
    learner(1, 1, cbs=[Wraps('a', heard), at('before_pred', lambda cb: heard.append('-'))]).fit(2)
    assert heard==['a','-','A']*4

def test_the_second_loader_is_validated():
    seen = []
    learn = learner(3, 2, cbs=at('before_validate', lambda cb: seen.append(cb.learn.dl)))
    with learn: learn._do_epoch_validate(); learn._do_epoch_validate(0)
    assert seen[0] is learn.dls.valid and seen[1] is learn.dls.train

def test_a_block_leaves_the_generator_of_a_loader_as_it_was():
    "Its order was another one afterwards, and so was that of the next fit"
    data = [(x[0], y[0]) for x,y in batches(8)]
    g = torch.Generator().manual_seed(1)
    learn = learner(dls=DataLoaders(DataLoader(data, 4, shuffle=True, generator=g), DataLoader(data, 4, shuffle=True, generator=g)))
    before = g.get_state()
    with learn: learn._do_epoch_validate()
    assert torch.equal(g.get_state(), before)

def test_a_batch_by_hand():
    "`one_batch` fetches, or takes what it is given; outside of a phase there is no `do_batch`"
    heard = []
    learn = learner(2, 1, cbs=at('after_batch', lambda cb: heard.append(cb.learn.iter)))
    with learn:
        learn._use_loader(learn.dls.valid)
        learn.batches.open()
        assert learn.one_batch(0) and learn.one_batch(5, next(iter(learn.dls.train))) and not learn.one_batch(6)
    assert heard==[0, 5]
    learn._split(next(iter(learn.dls.train)))
    with torch.no_grad(): learn._do_one_batch()
    assert learn.pred.shape==learn.yb[0].shape and learn.loss.ndim==0

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train'])
def test_stopped_before_the_first_batch(ev):
    "Nothing is trained or validated, and no row is written"
    heard = []
    learn = learner(3, 2, cbs=[at(ev, lambda cb: cb.learn.stop('enough')), *(at(e, lambda cb,e=e: heard.append(e)) for e in ('before_batch','before_validate','after_cancel_fit','after_epoch','after_fit'))])
    learn.fit(2)
    assert heard==['after_cancel_fit','after_fit'] and learn.stop_reason=='enough' and len(learn.recorder.history)==0

@pytest.mark.skipif(os.name!='posix', reason='signals of POSIX')
def test_a_signal_in_a_step_is_handled_when_the_step_is_done():
    "Before anybody hears of it"
    heard = []
    class Signals(torch.optim.SGD):
        def step(self, closure=None):
            signal.raise_signal(signal.SIGINT)
            super().step(closure)
            heard.append('step')
    learn = learner(3, 2, opt_func=Signals, cbs=[at(e, lambda cb,e=e: heard.append(e)) for e in ('after_step','before_zero_grad','after_exception')])
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert heard==['step','after_exception']

def test_a_fit_that_is_made_shorter_ends():
    "Also where it is already longer than that"
    learn = learner(2, 1)
    def shorter(cb):
        assert cb.learn.epoch<9, 'it goes on'
        if cb.learn.epoch==3: cb.learn.n_epoch = 2
    learn.fit(5, cbs=at('before_train', shorter))
    assert learn.epoch==3 and len(learn.recorder.history)==4

def test_stopped_in_an_epoch_no_other_one_begins():
    heard = []
    learn = learner(3, 2, cbs=[at('after_batch', lambda cb: cb.learn.stop('enough'), lambda cb: cb.training), *(at(e, lambda cb,e=e: heard.append(e)) for e in ('before_epoch','before_validate','after_cancel_fit'))])
    learn.fit(4)
    assert heard==['before_epoch','before_validate','after_cancel_fit'] and learn.train_iter==1

def test_batches_that_are_cancelled_before_they_come_would_never_end():
    with pytest.raises(RuntimeError, match='would never end'): learner().fit(1, cbs=at('before_fetch', throw(CancelBatch())))
