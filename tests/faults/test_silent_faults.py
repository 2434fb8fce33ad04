"""Faults that passed silently: data that ends because it was cancelled, a stop that came too early, unused callbacks"""
import warnings

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from learnkit.all import Callback, CancelBatch, DataLoaders, TrainEvalCallback, event
from toys import at, batches, learner, throw

def learner_on(train, valid=None, *cbs): return learner(dls=DataLoaders(train, *([] if valid is None else [valid])), default_cbs=False, cbs=[TrainEvalCallback, *cbs])

class Items(IterableDataset):
    "Cancels the batch at sample `bad`, in a generator or in an iterator that can continue"
    def __init__(self, bad, n=20): self.bad,self.n = bad,n
    def item(self, i):
        if i==self.bad: raise CancelBatch
        return torch.full((4,), float(i)),torch.ones(1)

class Generated(Items):
    def __iter__(self):
        for i in range(self.n): yield self.item(i)

class Continuing(Items):
    def __iter__(self): return map(self.item, range(self.n))

class Listed(Items):
    def __iter__(self): return (self.item(i) for i in range(self.n))

@pytest.mark.parametrize('cls', [Generated, Listed])
@pytest.mark.parametrize('bad', [0, 9, 18])
def test_a_cancel_that_ends_a_generator_is_an_error(cls, bad):
    "A `CancelBatch` in a generator ends it, and so used to end the epoch silently after two of five batches"
    with pytest.raises(RuntimeError, match='has ended it, so its data after batch'): learner_on(DataLoader(cls(bad), 4)).fit(1)
    with pytest.raises(RuntimeError, match='has ended it'): learner_on(list(DataLoader(Continuing(None), 4)), DataLoader(cls(bad), 4)).fit(1)

@pytest.mark.parametrize('workers', [1, 2])
def test_a_cancel_that_ends_a_generator_in_a_worker_is_an_error(workers):
    with pytest.raises(RuntimeError, match='Generated.__iter__'): learner_on(DataLoader(Generated(9), 4, num_workers=workers)).fit(1)

def test_a_generator_function_as_data():
    class Data:
        def __iter__(self):
            for i,b in enumerate(batches(5)):
                if i==2: raise CancelBatch
                yield b
    with pytest.raises(RuntimeError, match='after batch 2 is lost'): learner_on(Data()).fit(1)

@pytest.mark.parametrize('workers', [0, 1])
def test_an_iterator_that_can_continue_does(workers):
    learn = learner_on(DataLoader(Continuing(9), 1, num_workers=workers))
    seen = []
    learn.fit(1, cbs=at('after_pred', lambda cb: seen.append(int(cb.learn.xb[0][0,0]))))
    assert seen==[i for i in range(20) if i!=9]

@pytest.mark.parametrize('i', range(5))
def test_a_generator_within_a_sample_may_cancel(i):
    "A generator within `__getitem__` may cancel, even in the last sample, after which the data ends"
    class Sums(Dataset):
        def __len__(self): return 5
        def __getitem__(self, j):
            def parts():
                for _ in range(2):
                    if i==j: raise CancelBatch
                    yield 1.
            return torch.full((4,), sum(parts())),torch.ones(1)
    learn = learner_on(DataLoader(Sums(), 1))
    learn.fit(1)
    assert learn.train_iter==5

class Bad(Dataset):
    "The first `bad` samples are cancelled"
    def __init__(self, n, bad): self.n,self.bad = n,bad
    def __len__(self): return self.n
    def __getitem__(self, i):
        if i<self.bad: raise CancelBatch
        return torch.ones(4),torch.ones(1)

def test_many_cancels_of_the_data_do_not_raise():
    "1000 cancelled samples raised an error about `before_fetch`"
    learn = learner_on(DataLoader(Bad(1200, 1100), 1))
    learn.fit(1)
    assert learn.train_iter==1200

def test_many_cancels_in_after_fetch_do_not_raise():
    learn = learner_on(batches(1100, 1))
    learn.fit(1, cbs=at('after_fetch', throw(CancelBatch)))
    assert learn.train_iter==1100

def test_before_fetch_that_never_takes_a_batch_is_an_error():
    with pytest.raises(RuntimeError, match='`before_fetch` fetches nothing'): learner_on(batches(3)).fit(1, cbs=at('before_fetch', throw(CancelBatch)))

def test_data_that_only_cancels_is_an_error():
    class Stuck:
        def __iter__(self): return self
        def __next__(self): raise CancelBatch
    with pytest.raises(RuntimeError, match='and would not end'): learner_on(Stuck()).fit(1)

@pytest.mark.parametrize('valid', [[], DataLoader(TensorDataset(torch.ones(3, 4), torch.ones(3, 1)), 4, drop_last=True)], ids=['list','drop_last'])
def test_an_empty_validation_set_is_found_before_training(valid):
    "An empty validation set raised only after the first epoch"
    learn = learner_on(batches(3), valid)
    before,rng = learn.model.weight.clone(),torch.get_rng_state()
    with pytest.raises(ValueError, match='The validation loader yielded no batch'): learn.fit(1)
    assert torch.equal(before, learn.model.weight) and torch.equal(rng, torch.get_rng_state())

def test_validation_data_without_a_length_is_not_read_early():
    read = []
    class Data:
        def __iter__(self):
            for b in batches(2): read.append(1); yield b
    learn = learner_on(batches(3), Data())
    learn.fit(1, cbs=at('after_train', lambda cb: read.append('trained')))
    assert read==['trained', 1, 1]

@pytest.mark.parametrize('do', [lambda l: l.fit(1), lambda l: l.validate(), lambda l: l.get_preds()])
def test_weights_without_values_raise(do):
    "A model on the meta device used to train for an epoch without an error"
    with pytest.raises(ValueError, match="on the device 'meta'"): do(learner(model=nn.Linear(4, 1, device='meta')))

@pytest.mark.parametrize('ev,n', [('before_fit',0), ('before_epoch',0), ('before_train',0), ('before_batch',1), ('after_step',1), ('after_epoch',3)])
def test_a_stop_before_the_first_batch_trains_none(ev, n):
    "One batch was still trained"
    learn = learner(n=3)
    learn.fit(2, cbs=at(ev, lambda cb: cb.learn.stop('enough')))
    assert (learn.train_iter, learn.stop_reason)==(n, 'enough')
    learn.fit(1)
    assert learn.train_iter==3

# callbacks that would never be called

def test_a_handler_that_yields_raises():
    "Such a handler never ran, as a call only creates a generator"
    with pytest.raises(TypeError, match='contains `yield`'):
        class Gives(Callback):
            def after_batch(self): yield 1
    def f(self): yield 1
    async def g(self): pass
    with pytest.raises(TypeError, match='contains `yield`'): Callback(after_batch=f)
    with pytest.raises(TypeError, match='contains `await`'): Callback(after_batch=g)

@pytest.mark.parametrize('name,ours', [('on_epoch_end','after_epoch'), ('on_train_begin','before_fit'), ('on_train_batch_end','after_batch'), ('on_validation_epoch_start','before_validate'),
                                       ('on_batch_begin','before_batch'), ('begin_fit','before_fit'), ('begin_validate','before_validate'), ('on_before_optimizer_step','before_step'),
                                       ('on_before_zero_grad','before_zero_grad'), ('on_after_backward','after_backward')])
def test_names_of_other_libraries_raise(name, ours):
    "A method `on_epoch_end` was never called"
    with pytest.raises(TypeError, match=f'is never called here, as `{name}` is an event of .*write `{ours}`'): type('Other', (Callback,), {name:lambda self: None})

def test_a_method_that_is_no_event_anywhere_stays_unchanged(): type('Own', (Callback,), dict(on_better=lambda self: None, on_the_end=lambda self: None))

@pytest.mark.parametrize('modes', ['train', ('fit','train'), ['training']])
def test_modes_that_do_not_exist_raise(modes):
    with pytest.raises(ValueError, match='modes are'): type('Never', (Callback,), dict(modes=modes))
    with pytest.raises(ValueError, match='modes are'): Callback().modes = modes

def test_an_attribute_that_hides_the_learners_is_warned_of():
    "`self.epoch = 0` in a constructor hides the Learner's `epoch` for good"
    class Counts(Callback):
        def __init__(self): self.epoch = 0
    with pytest.warns(UserWarning, match='`epoch`, which hides the Learner'): learner(cbs=Counts())

def test_one_callback_on_two_learners_is_warned_of():
    "The first Learner silently lost the callback"
    cb = Callback()
    learner(cbs=cb)
    with pytest.warns(UserWarning, match='belonged to another Learner'): learner(cbs=cb)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fresh = Callback()
        learner().fit(1, cbs=fresh); learner().fit(1, cbs=fresh)
