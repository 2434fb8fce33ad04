"""Functions as handlers: which calls a filter lets through, and training intervals at any event"""
import pytest, torch
from hypothesis import given, strategies as st
from learnkit.loop.callback import Callback, handler_of
from learnkit.callbacks.intervals import EveryCallback
from learnkit.callbacks.handlers import Filter
from learnkit.callbacks.handlers import OnCallback
from toys import at, draws, learner

quick = draws(15)

def calls(name, n_epoch=3, n=5, cbs=(), start_epoch=0, **kw):
    "The numbers of trained batches at which a function at event `name` was called in a fit"
    done,got = [start_epoch*n],[]
    count = at('after_batch', lambda cb: done.append(done[-1]+1), lambda cb: cb.learn.training and cb.learn.mode=='fit', order=-50)
    learn = learner(n, cbs=[count, *cbs])
    learn.on(name, **kw)(lambda learn: got.append(done[-1]))
    learn.fit(n_epoch, start_epoch=start_epoch)
    return got

def every_callback_calls(every, n_epoch=3, n=5):
    "The numbers of trained batches at which an EveryCallback acts"
    got = []
    learner(n, cbs=EveryCallback(lambda learn: got.append(learn.train_iter), every)).fit(n_epoch)
    return got

@pytest.mark.parametrize('every', ['1ba', '4ba', '10sp', '0.3dur', '100h'])
def test_an_interval_is_due_as_in_every_callback(every): assert calls('after_batch', every=every)==every_callback_calls(every)

@pytest.mark.parametrize('every', ['1ep', '2ep', '5ep'])
def test_epochs(every): assert calls('after_epoch', every=every)==every_callback_calls(every)

@quick
@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.sampled_from(['before_batch', 'after_pred', 'after_step']))
def test_at_another_event_the_next_one_is_called(k, n, n_epoch, name):
    "The handler runs at the first such event after the interval has passed, in validation too"
    ends = [i for i in range(k, n*n_epoch+1, k)]
    want = [i for i in ends if i<n*n_epoch] if name=='after_step' else ends
    assert calls(name, n_epoch, n, every=f'{k}ba')==want

def test_only_training_batches_count():
    "Batches of validation, and of `validate` and `get_preds` within the fit, do not count"
    more = at('after_batch', lambda cb: (cb.learn.validate(), cb.learn.get_preds()), lambda cb: cb.learn.training and cb.learn.mode=='fit')
    assert calls('after_batch', every='4ba', cbs=[more])==calls('after_batch', every='4ba')
    learn,got = learner(3),[]
    learn.on('after_batch', every='1ba')(lambda learn: got.append(learn.mode))
    learn.validate(); learn.get_preds()
    assert got==[]

def test_each_fit_starts_a_new_count():
    learn,got = learner(3),[]
    learn.on('after_batch', every='2ba')(lambda learn: got.append(learn.train_iter))
    learn.fit(1); learn.fit(1)
    assert got==[2,2]

@pytest.mark.parametrize('stop', [1, 2])
def test_resume(stop):
    "A fit continued from a saved state calls the handler where an uninterrupted fit does"
    def run(state=None, n_epoch=3, start_epoch=0):
        cb = OnCallback(lambda learn: got.append((learn.epoch, learn.iter)), 'before_step', Filter(every='4ba'))
        if state: cb.load_state_dict(state)
        learner(5, cbs=cb).fit(n_epoch, start_epoch=start_epoch)
        return cb.state_dict()
    got = []; run(); whole = got
    got = []; run(run(n_epoch=stop), start_epoch=stop)
    assert got==whole==[(0,4), (1,3), (2,2)]

def test_handlers_without_an_interval_get_one_event():
    for kw in (dict(), dict(every=2), dict(once=1), dict(when=lambda f,learn: True)):
        assert handler_of(OnCallback(lambda learn: 0, 'after_step', Filter(**kw)), 'after_batch') is None

@pytest.mark.parametrize('kw,words', [(dict(every='5'), "'2ep'"), (dict(every='2ep', once=1), 'pass one of'), (dict(every=.5), 'integer'), (dict(every=print), 'integer'),
                                      (dict(once='1ba'), 'integer'), (dict(when=1), 'must be a function')])
def test_mistakes(kw, words):
    with pytest.raises((ValueError,TypeError)) as e: Filter(**kw)
    assert words in str(e.value)

def test_an_interval_on_a_method_raises():
    with pytest.raises(TypeError, match='learn.on'): Filter(every='5ba')(lambda self: 0)

def test_a_decorator_that_is_used_twice():
    "Each function has its own filter: the second one used to get every call that the first one should"
    learn,got = learner(4, 0),[]
    decorate = learn.on('after_batch', every=2)
    def f(learn): got.append(('f', learn.train_iter))
    def g(learn): got.append(('g', learn.train_iter))
    decorate(f); decorate(g)
    learn.fit(1)
    assert got==[('f',2), ('g',2), ('f',4), ('g',4)]

def test_an_overridden_method_keeps_its_filter():
    "A filter used to let through the calls of a method and those of the one that overrides it, mixed"
    got = []
    class Base(Callback):
        @Filter(every=2)
        def after_batch(self): got.append('base')
    class Derived(Base):
        @Filter(every=3)
        def after_batch(self):
            super().after_batch()
            got.append('derived')
    cb = Derived()
    learner(12, 0, cbs=cb).fit(1)
    assert got==['derived','base','derived']*2
    again = Derived()
    again.load_state_dict(cb.state_dict())
    assert again.state_dict()==cb.state_dict() and {o['num_called'] for o in cb.state_dict().values()}=={12, 4}
