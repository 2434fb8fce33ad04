"""Two processes with shards of several loaders train as one process with all the data, and resume bit for bit"""
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import CheckpointCallback, Callback, CombinedLoader, DataLoaders, EachLoader, Learner
from test_distributed import everywhere, processes
from toys import weights

pytestmark = pytest.mark.slow

def loader(n, seed, **kw):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), **kw)

def learner(path, bs, *cbs, shuffle=False):
    torch.manual_seed(0)
    dl = CombinedLoader(dict(a=loader(16, 0, batch_size=bs, shuffle=shuffle), b=loader(8, 1, batch_size=bs, shuffle=shuffle)), weights=dict(a=2, b=1))
    learn = Learner(DataLoaders(dl), nn.Linear(3, 1), F.mse_loss, torch.optim.SGD, lr=.1, path=path, cbs=[EachLoader(dict(b=F.l1_loss)), *cbs])
    learn.logger = lambda *a, **k: None
    return learn

def row(learn): return {k:v for k,v in learn.recorder.history[-1].items() if k!='time'}

def _as_one(rank, world, path, one, want):
    learn = learner(path, 2)
    learn.fit(2)
    assert torch.allclose(weights(learn), one, atol=1e-6)
    assert all(torch.equal(o, weights(learn)) for o in everywhere(weights(learn)))
    assert row(learn)==pytest.approx(want, rel=1e-4)

def test_as_one_process(processes, tmp_path):   # noqa: F811
    one = learner(tmp_path, 4)
    one.fit(2)
    processes(2, _as_one, tmp_path, weights(one), row(one))

def _resumed(rank, world, path):
    def stop(cb):
        if cb.learn.train_iter==4: raise KeyboardInterrupt
    whole,first,second = (learner(path/d, 2, CheckpointCallback('1ba'), shuffle=True) for d in 'abb')
    torch.manual_seed(3); whole.fit(3)
    torch.manual_seed(3)
    with pytest.raises(KeyboardInterrupt): first.fit(3, cbs=Callback(after_batch=stop))
    second.fit(3, resume='auto')
    assert torch.equal(weights(whole), weights(second)) and row(whole)==row(second)

def test_resumed(processes, tmp_path): processes(2, _resumed, tmp_path)   # noqa: F811
