"""An error in a dataset names its sample, in the main process and in workers"""
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from learnkit import CheckpointCallback, Learner


class Fails(Dataset):
    "Sample 37 of 64 cannot be read"
    kind = KeyError
    def __len__(self): return 64
    def __getitem__(self, i):
        if i==37: raise self.kind('img_37.png')
        return torch.zeros(4),0

class ReadsAtOnce(Fails):
    def __getitems__(self, idxs): return [self[i] for i in idxs]

def notes_of_fit(ds, *cbs, **kwargs):
    "The notes of the error that ends a fit, and the loader"
    dl = DataLoader(ds, 16, **kwargs)
    learn = Learner(dl, nn.Linear(4, 2), nn.CrossEntropyLoss(), cbs=cbs)
    with pytest.raises(Exception) as e, learn.no_bar(), learn.no_logging(): learn.fit(1)
    return getattr(e.value, '__notes__', []),dl

@pytest.mark.parametrize('kwargs', [{}, dict(num_workers=2), dict(num_workers=1, persistent_workers=True)])
def test_the_sample_is_named(kwargs):
    notes,dl = notes_of_fit(Fails(), **kwargs)
    assert notes==['Raised by sample 37 of the dataset Fails, epoch 0, batch 2']
    assert dl.worker_init_fn is None, 'it is the loader of the user again'

@pytest.mark.parametrize('num_workers', [0, 1])
def test_a_subset_names_the_sample_of_its_dataset(num_workers):
    notes,_ = notes_of_fit(Subset(Subset(Fails(), range(1, 64)), [3, 36]), num_workers=num_workers)
    assert notes==['Raised by sample 37 of the dataset Fails, epoch 0, batch 0']

def test_the_sample_is_named_where_checkpoints_record_the_position_of_workers(tmp_path):
    notes,_ = notes_of_fit(Fails(), CheckpointCallback('1ba', folder=tmp_path), num_workers=1)
    assert any('sample 37 of the dataset Fails' in n for n in notes)

def test_the_length_is_given_for_an_index_only():
    class Short(Fails): kind = IndexError
    notes,_ = notes_of_fit(Short())
    assert notes==['Raised by sample 37 of the dataset Short, epoch 0, batch 2. Its `__len__` returns 64: check that number']

def test_a_dataset_that_reads_a_batch_at_once_is_read_as_it_is():
    notes,_ = notes_of_fit(ReadsAtOnce(), num_workers=1)
    assert not any('Raised by sample' in n for n in notes)

def fail_to_start(worker_id): raise RuntimeError(f'worker {worker_id} cannot start')

def test_the_own_function_of_the_loader_is_called():
    with pytest.raises(RuntimeError, match='worker 0 cannot start'):
        learn = Learner(DataLoader(Fails(), 16, num_workers=1, worker_init_fn=fail_to_start), nn.Linear(4, 2), nn.CrossEntropyLoss())
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
