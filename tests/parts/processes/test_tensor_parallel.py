"""Tensor-parallel layers train as one process does, through kill, resume, save, load, predict and export"""
from functools import partial

import pytest, torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from learnkit.all import CSVLogger, Callback, CheckpointCallback, DataLoaders, GradientClip, Learner, accuracy, load_learner, num_distrib
from learnkit.data.process import whole
from test_distributed import everywhere, processes
from toys import slow

torch.set_num_threads(1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up,self.down,self.norm,self.drop = nn.Linear(6, 8),nn.Linear(8, 6),nn.LayerNorm(6),nn.Dropout(.1)
    def forward(self, x): return self.norm(x + self.drop(self.down(torch.tanh(self.up(x)))))

def net(drop=True):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(10, 6), Block(), nn.BatchNorm1d(6), nn.Linear(6, 3))
    if not drop: model[1].drop = nn.Identity()
    return model

def parallel(model):
    if num_distrib()>1: parallelize_module(model[1], init_device_mesh('cpu', (num_distrib(),)), {'up':ColwiseParallel(), 'down':RowwiseParallel()})
    return model

def loaders(weighted=False):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(100, 10, generator=g)
    ds = TensorDataset(x, (x[:,0]>0).long() + (x[:,1]>1).long())
    order = dict(sampler=WeightedRandomSampler(torch.arange(1., 101), 100)) if weighted else dict(shuffle=True)
    return DataLoaders(DataLoader(ds, 8, **order), DataLoader(ds, 16))

def learner(path, *cbs, drop=True, weighted=False):
    learn = Learner(loaders(weighted), parallel(net(drop)), nn.CrossEntropyLoss(), partial(torch.optim.SGD, momentum=.9), lr=.05, metrics=accuracy, path=path, cbs=[GradientClip(.5), *cbs])
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def weights(learn): return torch.cat([whole(p).flatten() for p in learn.model.state_dict().values()])
def rows(learn): return [{k:v for k,v in row.items() if k!='time'} for row in learn.recorder.history]

class Ends(Callback):
    acts = 'nothing'   # without it, it is the same run
    def after_batch(self):
        if self.learn.training and self.learn.train_iter==17: raise KeyboardInterrupt

def outcome(learn):
    "The results of one process: weights, rows, means, predictions"
    torch.manual_seed(7)
    learn.fit(2)
    return weights(learn),rows(learn),[*learn.validate()],learn.get_preds()[0]

def _trains(rank, world, path, wanted):
    for weighted,(ws,rs,means,preds) in wanted.items():
        learn = learner(path, drop=False, weighted=weighted)
        own = outcome(learn)
        assert torch.allclose(own[0], ws, atol=2e-5) and torch.allclose(own[3], preds, atol=2e-5)
        for a,b in zip(own[1], rs): assert [*a.values()]==pytest.approx([*b.values()], abs=2e-5)
        assert own[2]==pytest.approx(means, abs=2e-5)
        assert all(torch.equal(o, own[0]) for o in everywhere(own[0]))

@pytest.mark.parametrize('world', [2, *slow(4)])
def test_trains_as_one_process(processes, tmp_path, world):   # noqa: F811
    wanted = {weighted:outcome(learner(tmp_path, drop=False, weighted=weighted)) for weighted in (False, True)}
    processes(world, _trains, tmp_path, wanted)

def _killed(rank, world, path):
    "All write into one folder"
    torch.manual_seed(7)
    unbroken = learner(path/'a', CheckpointCallback('5ba'), CSVLogger())
    unbroken.fit(3)
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): learner(path/'b', CheckpointCallback('5ba'), CSVLogger(), Ends()).fit(3)
    resumed = learner(path/'b', CheckpointCallback('5ba'), CSVLogger())
    resumed.fit(3, resume='auto')
    assert torch.equal(weights(unbroken), weights(resumed)) and rows(unbroken)==rows(resumed)
    assert all(torch.equal(o, weights(resumed)) for o in everywhere(weights(resumed)))
    assert len((path/'b'/'history.csv').read_text().splitlines())==1+3   # written by one process

    resumed.save('all', with_opt=True)
    other = learner(path/'b')
    other.load('all')
    assert torch.equal(weights(other), weights(resumed)) and torch.equal(other.get_preds()[0], resumed.get_preds()[0])
    exported = resumed.export('exported')
    if rank==0: (path/'exported').write_text(str(exported))
    ws = weights(resumed)
    if rank==0: torch.save((ws, resumed.recorder.history['valid_loss'][-1]), path/'found')
    preds = resumed.get_preds()[0]
    if rank==0: torch.save(preds, path/'preds')

@pytest.mark.parametrize('world', [2, *slow(4)])
def test_one_folder_of_checkpoints(processes, tmp_path, world):   # noqa: F811
    processes(world, _killed, tmp_path)
    ws,loss = torch.load(tmp_path/'found')
    alone = learner(tmp_path/'b')
    alone.load('all')
    assert torch.equal(weights(alone), ws) and alone.validate()[0]==pytest.approx(loss, abs=2e-5)
    preds = torch.load(tmp_path/'preds')
    assert torch.allclose(alone.get_preds()[0], preds, atol=1e-5)
    exported = load_learner((tmp_path/'exported').read_text(), net())
    assert torch.allclose(exported.get_preds(dl=loaders().valid)[0], preds, atol=1e-5)

def goes_on(path, rank=0):
    learn = learner(path, CheckpointCallback('5ba'), drop=False)
    learn.fit(3, resume='auto')
    ws = weights(learn)
    if rank==0: torch.save((ws, rows(learn)), path/'found')

def _begins(rank, world, path):
    torch.manual_seed(7)
    unbroken = learner(path/'whole', drop=False)
    unbroken.fit(3)
    ws = weights(unbroken)
    if rank==0: torch.save((ws, rows(unbroken)), path/'whole'/'found')
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): learner(path/'cut', CheckpointCallback('5ba'), Ends(), drop=False).fit(3)

def _goes_on(rank, world, path): goes_on(path, rank)

@pytest.mark.parametrize('then', [1, *slow(2, 4)])
def test_continues_in_another_number(processes, tmp_path, then):   # noqa: F811
    (tmp_path/'whole').mkdir()
    processes(2, _begins, tmp_path)
    (tmp_path/'store').unlink()   # it has the addresses of these two
    if then==1: goes_on(tmp_path/'cut')
    else: processes(then, _goes_on, tmp_path/'cut')
    (ws,rs),(now,rs2) = (torch.load(tmp_path/name/'found') for name in ('whole','cut'))
    assert torch.allclose(ws, now, atol=2e-5) and len(rs2)==3
    for a,b in zip(rs, rs2): assert [*a.values()]==pytest.approx([*b.values()], abs=2e-5)

def _refuses(rank, world):
    ds = TensorDataset(torch.randn(8, 10, generator=torch.Generator().manual_seed(rank)), torch.zeros(8, dtype=torch.long))
    with pytest.raises(ValueError, match='different training data, but with tensor parallelism'):
        Learner(DataLoaders(DataLoader(ds, 4)), parallel(net()), nn.CrossEntropyLoss()).fit(1)

@pytest.mark.slow
def test_what_cannot_be_right_raises(processes): processes(2, _refuses)   # noqa: F811
