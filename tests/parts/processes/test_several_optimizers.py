"""Several optimizers in two processes: as in one process with all items, the same in both, and resumed to the bit"""
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.utils.data import TensorDataset

from learnkit.all import Callback, CheckpointCallback, DataLoaders, GradientAccumulation, GradientClip, InTurn, Learner, ParamScheduler, SchedCos
from test_distributed import everywhere, processes
from toys import weights

pytestmark = pytest.mark.slow

def learner(path, bs, *cbs):
    torch.manual_seed(0)
    x = torch.randn(16, 3)
    two = {'m':(SGD, '*weight'), 'r':Adam}
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    learn = Learner(DataLoaders.from_dsets(TensorDataset(x, x.sum(1, keepdim=True)), bs=bs, shuffle=False), model, F.mse_loss, two, {'m':.1, 'r':.02},
                    path=path, cbs=[GradientClip({'m':.5}), ParamScheduler({'lr_m':SchedCos(.1, .01)}), *cbs])
    learn.logger = lambda *a, **k: None
    return learn

def states(learn): return torch.cat([t.flatten().float() for s in learn.opt.state_dict()['state'].values() for t in s.values() if t is not None])

def _in_two(rank, world, path, one, accumulated):
    for want,cbs in (one, ()), (accumulated, [GradientAccumulation('2ba')]):
        learn = learner(path, 2, *cbs)
        learn.fit(2)
        assert torch.allclose(weights(learn), want, atol=1e-6)
        assert all(torch.equal(o, weights(learn)) for o in everywhere(weights(learn)))
        assert all(torch.equal(o, states(learn)) for o in everywhere(states(learn)))
    def stop(cb):
        if cb.learn.train_iter==5: raise KeyboardInterrupt
    whole,first,second = (learner(path/d, 2, CheckpointCallback('1ba')) for d in 'abb')
    whole.fit(3)
    with pytest.raises(KeyboardInterrupt): first.fit(3, cbs=Callback(after_batch=stop))
    second.fit(3, resume='auto')
    assert torch.equal(weights(whole), weights(second)) and torch.equal(states(whole), states(second))
    with pytest.raises(ValueError, match='train with `InTurn` in one process'): learner(path, 2, InTurn(['m','r'])).fit(1)

def test_in_two_processes(processes, tmp_path):   # noqa: F811
    one,accumulated = learner(tmp_path, 4),learner(tmp_path, 8)
    one.fit(2); accumulated.fit(2)
    processes(2, _in_two, tmp_path, weights(one), weights(accumulated))
