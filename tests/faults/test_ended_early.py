"A loader that ends before its length causes one warning"
import warnings

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from learnkit.all import Callback, CancelTrain, DataLoaders, Learner, LimitBatches, StepsPerEpoch, StopAfter, ValidateEvery

x = torch.randn(6, 2)
class StopsEarly:
    "A map-style dataset that raises StopIteration, as `next(it)` does on an exhausted iterator"
    def __len__(self): return 6
    def __getitem__(self, i):
        if i>=2: raise StopIteration
        return x[i],x[i]
class OverstatedLength(list):
    def __len__(self): return 3
class Stream(IterableDataset):
    def __init__(self, n): self.n = n
    def __len__(self): return 6
    def __iter__(self): return iter([(o,o) for o in x[:self.n]])
def collate(items):
    if items[0][0].equal(x[2]): raise StopIteration
    return default_collate(items)

whole = TensorDataset(x, x)
short = dict(data_set=lambda: DataLoader(StopsEarly(), 2), collate_fn=lambda: DataLoader(whole, 2, collate_fn=collate), length=lambda: OverstatedLength([(x[:2],x[:2])]),
             worker=lambda: DataLoader(StopsEarly(), 2, num_workers=1), stream=lambda: DataLoader(Stream(2), 2))

def fit_messages(train, valid=None, cbs=None, n_epoch=2):
    learn = Learner(DataLoaders(train, valid), nn.Linear(2,2), F.mse_loss, torch.optim.SGD, lr=.1, cbs=cbs)
    with learn.no_bar(), learn.no_logging(), warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('default')
        learn.fit(n_epoch)
    return [str(o.message) for o in w if 'batches' in str(o.message)]

@pytest.mark.parametrize('kind', short)
@pytest.mark.parametrize('training', [True, False])
def test_a_short_epoch_warns_once(kind, training):
    dl,plain = short[kind](),[(x,x)]
    messages = fit_messages(*((dl,plain) if training else (plain,dl)))
    assert len(messages)==1 and f"The {'training' if training else 'validation'} loader ended after 1 of 3 batches" in messages[0]

def test_a_callback_that_iterates_over_the_same_loader():
    dl = DataLoader(whole, 2, num_workers=1, persistent_workers=True)
    def read(cb):
        if cb.learn.iter==1: [*dl]
    messages = fit_messages(dl, cbs=Callback(after_batch=read))
    assert len(messages)==1 and 'ended after 2 of 3 batches' in messages[0]

def test_short_data_in_get_preds_warn():
    learn = Learner(DataLoaders([(x,x)], short['data_set']()), nn.Linear(2,2), F.mse_loss)
    with learn.no_bar(), pytest.warns(UserWarning, match='ended after 1 of 3 batches'): learn.get_preds()

def stop(cb):
    if cb.learn.training and cb.learn.iter==1: raise CancelTrain
@pytest.mark.parametrize('cbs', [None, lambda: LimitBatches(2, 1), lambda: StepsPerEpoch(2), lambda: StopAfter(2), lambda: Callback(after_batch=stop), lambda: ValidateEvery('1ba'),
                                 lambda: Callback(before_train=lambda cb: cb.learn.batches.stop_at(1))])
def test_limited_epochs_do_not_warn(cbs):
    assert not fit_messages(DataLoader(whole, 2), DataLoader(whole, 2), cbs and cbs(), n_epoch=3)
    assert not fit_messages(DataLoader(Stream(6), 2), DataLoader(Stream(6), 2), cbs and cbs(), n_epoch=3)

def test_a_limit_does_not_count_as_a_length():
    class Unknown(IterableDataset):
        def __iter__(self): return iter([(o,o) for o in x[:2]])
    assert not fit_messages(DataLoader(Unknown(), 2), cbs=LimitBatches(3))
