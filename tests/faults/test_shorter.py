"""A resume with less data than the position in its epoch raises an error with a way out, which works"""
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from learnkit.data.resumable_loader import ResumableLoader
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import read_checkpoint
from toys import few

class Kill(Callback):
    order,acts = 200,'nothing'
    def after_batch(self):
        if self.training and self.train_iter==15: raise KeyboardInterrupt

class Stream(IterableDataset):
    def __init__(self, n): self.n = n
    def __iter__(self): return iter([(torch.full((1,), float(i)), torch.ones(1)) for i in range(2*self.n)])

kinds = dict(list=lambda n: [(torch.full((2, 1), float(i)), torch.ones(2, 1)) for i in range(n)],
             loader=lambda n: DataLoader([(torch.full((1,), float(i)), torch.ones(1)) for i in range(2*n)], 2),
             stream=lambda n: DataLoader(Stream(n), 2),
             workers=lambda n: DataLoader(Stream(n), 2, num_workers=1))

def learner(data, path, *cbs):
    torch.manual_seed(0)
    learn = Learner((data, None), nn.Linear(1, 1), nn.MSELoss(), lr=.001, path=path, cbs=[CheckpointCallback('1ba', keep=None), *cbs])
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind', kinds)
@few(1)
def test_a_position_beyond_the_end_raises(kind, tmp_path):
    with pytest.raises(KeyboardInterrupt): learner(kinds[kind](10), tmp_path, Kill()).fit(3)
    last, = tmp_path.glob('checkpoints/*/step-00000015.pth')
    with pytest.raises(ValueError, match=r"To begin a new fit with its weights: `learn.model.load_state_dict\(read_checkpoint\(path\)\['model'\]\)`"): learner(kinds[kind](4), tmp_path/'a').fit(3, resume=last)
    again = learner(kinds[kind](4), tmp_path/'b')
    again.model.load_state_dict(read_checkpoint(last)['model'])
    again.fit(1)
    assert again.train_iter==4
    exact = learner(kinds[kind](5), tmp_path/'c')   # the epoch is finished
    exact.fit(3, resume=last)
    assert exact.train_iter==15+5

def test_one_of_several_processes_has_fewer_batches(monkeypatch):
    "Its workers, whose states were not saved, load the batches before the position again, and no batch is left"
    monkeypatch.setattr('learnkit.data.resumable_loader.num_shards', lambda: 2)
    def loader(n): return ResumableLoader(DataLoader([torch.ones(1) for _ in range(2*n)], 2, num_workers=1))
    long,short = loader(4),loader(2)
    it = iter(long)
    for _ in range(3): next(it)
    short.begin_at({**long.state(3), 'workers':None})
    assert [*short]==[]
