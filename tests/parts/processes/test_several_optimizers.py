"""Several optimizers in two processes: equal in both, as one process with all samples, and resumed bit for bit"""
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.utils.data import TensorDataset

from learnkit.all import Callback, CheckpointCallback, DataLoaders, FullyShard, GradientAccumulation, GradientClip, InTurn, Learner, ParamScheduler, SchedCos
from test_distributed import everywhere, processes
from test_in_turn import GAN, batches, losses, two
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

# a GAN, whose turns have gradients for a part of the parameters, some of them outside of the model's forward pass

def gan(turns, bs, path, *cbs, shuffle=False):
    z,real = map(torch.cat, zip(*batches()))
    model = GAN()
    learn = Learner(DataLoaders.from_dsets(TensorDataset(z, real), bs=bs, shuffle=shuffle), model, losses(model)['g'], two, lr=.05, path=path, cbs=[InTurn(turns, **losses(model)), *cbs])
    learn.logger = lambda *a, **k: None
    return learn

def _gan_in_two(rank, world, path, wanted):
    for turns,(want,rows) in wanted.items():
        learn = gan(list(turns), 8//world, path)
        learn.fit(2)
        assert torch.allclose(weights(learn), want, atol=1e-5), turns
        assert all(torch.equal(o, weights(learn)) and torch.equal(s, states(learn)) for o,s in zip(everywhere(weights(learn)), everywhere(states(learn))))
        for name in 'd_loss','g_loss': assert torch.allclose(torch.tensor(learn.recorder.history[name]), torch.tensor(rows[name]), atol=1e-5)
    def by_first(learn): return [('d',('d','g'))[learn.train_iter%2], 'g'][rank>0]   # each process would do something else: process 0 decides
    first = gan(by_first, 8//world, path)
    first.fit(2)
    assert torch.allclose(weights(first), wanted[('d',('d','g'))][0], atol=1e-5)
    def stop(cb):
        if cb.learn.train_iter==8: raise KeyboardInterrupt
    whole,cut,resumed = (gan(['d',('d','g')], 8//world, path/d, CheckpointCallback('1ba'), shuffle=True) for d in 'abb')
    torch.manual_seed(7)
    whole.fit(3)
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): cut.fit(3, cbs=Callback(after_batch=stop))
    resumed.fit(3, resume='auto')
    assert torch.equal(weights(whole), weights(resumed)) and torch.equal(states(whole), states(resumed))

@pytest.mark.parametrize('world', [2, 4])
def test_a_gan_in_turns(processes, tmp_path, world):   # noqa: F811
    wanted = {}
    for turns in ('d','g'),('d',('d','g')):
        learn = gan(list(turns), 8, tmp_path)
        learn.fit(2)
        wanted[turns] = weights(learn),{name:[*learn.recorder.history[name]] for name in ('d_loss','g_loss')}
    processes(world, _gan_in_two, tmp_path, wanted)

def _sharded_gan(rank, world, path):
    with pytest.raises(ValueError, match='InTurn steps some of the parameters at a time'): gan(['d','g'], 4, path, FullyShard()).fit(1)

def test_a_sharded_gan_raises(processes, tmp_path): processes(2, _sharded_gan, tmp_path)   # noqa: F811

def test_in_two_processes(processes, tmp_path):   # noqa: F811
    one,accumulated = learner(tmp_path, 4),learner(tmp_path, 8)
    one.fit(2); accumulated.fit(2)
    processes(2, _in_two, tmp_path, weights(one), weights(accumulated))
