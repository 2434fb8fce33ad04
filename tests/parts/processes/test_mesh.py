"""Tensor parallel layers on one mesh with data parallelism, with and without `fully_shard`: four processes train, save, resume and predict as one"""
from functools import partial

import pytest, torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from learnkit.all import (CSVLogger, Callback, CheckpointCallback, DataLoaders, EMACallback, GradientAccumulation, GradientClip, Learner, SaveModelCallback, accuracy, load_learner, num_distrib)
from learnkit.data.process import whole
from learnkit.processes.tensor_parallel import TensorParallel
from learnkit.speed.fully_shard import FullyShard
from test_distributed import everywhere, processes
from toys import few, slow

torch.set_num_threads(1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up,self.down,self.norm = nn.Linear(6, 8),nn.Linear(8, 6),nn.LayerNorm(6)
    def forward(self, x): return self.norm(x + self.down(torch.tanh(self.up(x))))

def net(norm=False):
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(10, 6), Block(), nn.BatchNorm1d(6) if norm else nn.Identity(), nn.Linear(6, 3))

class Layout:
    "How the processes share the model: `('dp','tp')` is the order of the dimensions"
    def __init__(self, shape, names, fsdp): self.shape,self.names,self.fsdp = shape,names,fsdp
    def __str__(self): return f"{'x'.join(map(str, self.shape))} {'sharded' if self.fsdp else 'plain'}"   # the same in each process of pytest
    def __call__(self, model):
        "What a user of PyTorch writes"
        if num_distrib()==1: return model
        mesh = init_device_mesh('cpu', self.shape, mesh_dim_names=self.names)
        parallelize_module(model[1], mesh['tp'], {'up':ColwiseParallel(), 'down':RowwiseParallel()})
        data = tuple(name for name in self.names if name!='tp')
        if self.fsdp:
            for m in (model[1], model): fully_shard(m, mesh=mesh[data])
        return model

both = Layout((2,2), ('dp','tp'), True)
plain = Layout((2,2), ('dp','tp'), False)
turned = Layout((2,2), ('tp','dp'), False)
tensor = Layout((2,), ('tp',), False)
one = Layout((1,), ('tp',), False)

def data(n=96):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, 10, generator=g)
    return TensorDataset(x, (x[:,0]>0).long() + (x[:,1]>1).long())

def learner(path, layout, *cbs, bs=8, norm=False, opt_func=partial(torch.optim.SGD, momentum=.9), lr=.05, train=None, clip=.5):
    "Steps of 16 samples if there are two rows"
    train = train or DataLoader(data(), bs, shuffle=True)
    learn = Learner(DataLoaders(train, DataLoader(data(41), 8)), layout(net(norm)), nn.CrossEntropyLoss(), opt_func, lr=lr, metrics=accuracy, path=path, cbs=[GradientClip(clip), *cbs])
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def weights(learn): return torch.cat([whole(p).flatten() for p in learn.model.state_dict().values()])
def rows(learn): return [{k:v for k,v in row.items() if k!='time'} for row in learn.recorder.history]
def close(a, b, atol=2e-6): torch.testing.assert_close(a, b, rtol=0, atol=atol)
def close_rows(a, b):
    assert len(a)==len(b)
    for x,y in zip(a, b): assert [*x.values()]==pytest.approx([*y.values()], abs=2e-5)

def ordered(bs): return DataLoader(data(), bs)   # without shuffling, two processes have the same steps as one

def outcome(learn, n=2):
    "The results of one process: weights, rows, means, predictions, and the last norm of the gradients"
    learn.fit(n)
    return weights(learn),rows(learn),[*learn.validate()],learn.get_preds()[0],torch.as_tensor(learn.gradient_clip.norm)

adam = partial(torch.optim.AdamW, weight_decay=.1)
ways = {'sgd':{}, 'adam':dict(opt_func=adam, lr=.01)}

def _trains(rank, world, path, layout, wanted):
    for way,(ws,rs,means,preds,norm) in wanted.items():
        learn = learner(path, layout, train=ordered(8), **ways[way])
        own = outcome(learn)
        close(own[0], ws)
        close_rows(own[1], rs)
        assert own[2]==pytest.approx(means, abs=2e-5)
        close(own[3], preds, 1e-5)
        close(own[4], norm, 1e-5)
        assert all(torch.equal(o, own[0]) for o in everywhere(own[0]))

def alone(path, **kw): return outcome(learner(path, one, train=ordered(16), **kw))

@few(0, 2)   # with LEARNKIT_SWEEP=1 all of them
@pytest.mark.parametrize('layout', [both, *slow(plain, turned)], ids=lambda o: '-'.join(o.names)+'-fsdp'*o.fsdp)
def test_trains_as_one_process(processes, tmp_path, layout):   # noqa: F811
    processes(4, _trains, tmp_path, layout, {way:alone(tmp_path, **kw) for way,kw in ways.items()})

# checkpoints, files, and another number of processes

class Ends(Callback):
    acts = 'nothing'   # without it, it is the same run
    def after_batch(self):
        if self.learn.training and self.learn.train_iter==8: raise KeyboardInterrupt

def saving(path, layout, *cbs, bs=8, **kw): return learner(path, layout, CheckpointCallback('3ba'), CSVLogger(), SaveModelCallback(), *cbs, bs=bs, norm=True, **kw)

def _killed(rank, world, path, layout):
    "All processes write into one folder"
    torch.manual_seed(7)
    unbroken = saving(path/'whole', layout)
    unbroken.fit(2)
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): saving(path/'cut', layout, Ends()).fit(2)
    resumed = saving(path/'cut', layout)
    resumed.fit(2, resume='auto')
    assert torch.equal(weights(unbroken), weights(resumed)) and rows(unbroken)==rows(resumed)
    assert all(torch.equal(o, weights(resumed)) for o in everywhere(weights(resumed)))
    assert len((path/'cut'/'history.csv').read_text().splitlines())==1+2   # written by one process

    resumed.save('all', with_opt=True)
    other = learner(path/'cut', layout, norm=True)
    other.load('all')
    assert torch.equal(weights(other), weights(resumed)) and torch.equal(other.get_preds()[0], resumed.get_preds()[0])
    exported = resumed.export('exported')
    found = weights(resumed),resumed.get_preds()[0]
    if rank==0: torch.save((found, str(exported), rows(resumed)), path/'found')

@few(1, 1)   # with LEARNKIT_SWEEP=1 all of them
@pytest.mark.parametrize('layout', [both, *slow(plain, turned)], ids=lambda o: '-'.join(o.names)+'-fsdp'*o.fsdp)
def test_killed_and_resumed(processes, tmp_path, layout):   # noqa: F811
    processes(4, _killed, tmp_path, layout)
    (ws,preds),exported,_ = torch.load(tmp_path/'found')
    alone = learner(tmp_path/'cut', one, norm=True)
    alone.load('all')
    assert torch.equal(weights(alone), ws)
    close(alone.get_preds()[0], preds, 1e-5)
    best = learner(tmp_path/'cut', one, norm=True)
    best.load('model')   # which `SaveModelCallback` wrote
    one_loaded = load_learner(exported, net(norm=True))
    close(one_loaded.get_preds(dl=DataLoader(data(41), 8))[0], preds, 1e-5)

def _ends(rank, world, path, layout):
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): learner(path, layout, CheckpointCallback('4ba'), Ends(), train=ordered(8)).fit(3)

def resumes(path, layout, bs):
    learn = learner(path, layout, CheckpointCallback('4ba'), train=ordered(bs))
    learn.fit(3, resume='auto')
    return weights(learn),rows(learn)

def _resumes(rank, world, path, layout, bs):
    found = resumes(path, layout, bs)
    if rank==0: torch.save(found, path/'found')

@few(0, 1)
@pytest.mark.parametrize('first,then,bs', [*slow((both,tensor,16), (both,one,16), (plain,both,8), (both,plain,8), (plain,one,16))], ids=str)
def test_resumed_on_another_mesh(processes, tmp_path, first, then, bs):   # noqa: F811
    unbroken = learner(tmp_path/'whole', one, train=ordered(16))
    unbroken.fit(3)
    processes(4, _ends, tmp_path/'cut', first)
    (tmp_path/'store').unlink()   # it has the addresses of these four
    n = torch.Size(then.shape).numel()
    if n==1: found = resumes(tmp_path/'cut', then, bs)
    else:
        processes(n, _resumes, tmp_path/'cut', then, bs)
        found = torch.load(tmp_path/'cut'/'found')
    close(found[0], weights(unbroken))
    close_rows(found[1], rows(unbroken))

# other ways, and what raises an error

def _ways(rank, world, path, wanted):
    # accumulation with a checkpoint within a step
    for layout in (both, plain):
        def accumulating(at, *cbs):
            torch.manual_seed(7)
            return learner(path/f'{layout.fsdp}{at}', layout, CheckpointCallback('1ba'), GradientAccumulation(16), *cbs, bs=4)   # of one process: four batches
        (unbroken := accumulating('a')).fit(1)
        with pytest.raises(KeyboardInterrupt): accumulating('b', Ends()).fit(1)
        (resumed := accumulating('b')).fit(1, resume='auto')
        assert torch.equal(weights(unbroken), weights(resumed)), layout.fsdp
        learn = learner(path, layout, GradientAccumulation(16), EMACallback(.9), train=ordered(4))
        learn.fit(1)
        close(weights(learn), wanted)

    # data that each row has already
    rows_of = DistributedSampler(data(), 2, rank//2, shuffle=False)
    learn = learner(path, both, train=DataLoader(data(), 8, sampler=rows_of))
    learn.fit(1)
    assert torch.equal(everywhere(weights(learn))[3], weights(learn)) and learn.train_iter==6
    own = DataLoader(torch.utils.data.Subset(data(), range(rank//2, 96, 2)), 8)
    other = learner(path, both, TensorParallel(shard=False), train=own)
    other.fit(1)
    close(weights(other), weights(learn))

def _refuses(rank, world, path):
    wrong = DistributedSampler(data(), 4, rank)
    with pytest.raises(ValueError, match=f'is for process {rank} of 4, but this process has shard {rank//2} of 2'):
        learner(path, both, train=DataLoader(data(), 8, sampler=wrong)).fit(1)
    with pytest.raises(ValueError, match='different training data, but with tensor parallelism'):
        learner(path, both, train=DataLoader(torch.utils.data.Subset(data(), range(rank, 96, 4)), 8)).fit(1)
    with pytest.raises(ValueError, match='`fit` adds what such a model needs'): learner(path, both, FullyShard()).fit(1)
    mesh = init_device_mesh('cpu', (2,2), mesh_dim_names=('dp','tp'))
    parallelize_module((model := net())[1], mesh['tp'], {'up':ColwiseParallel(), 'down':RowwiseParallel()})
    fully_shard(model[1], mesh=mesh['dp'])
    with pytest.raises(ValueError, match='but the model itself is not: call `fully_shard.model.` too'): learner(path, lambda _: model).fit(1)

def _fails_early(rank, world, path):
    "Before the first forward pass `fully_shard` has no state to reset, and after it a failed batch is reset"
    def throw(cb): raise ValueError('too early')
    learn = learner(path, Layout((2,1), ('dp','tp'), True))
    for name in 'before_fit','before_batch','after_pred':
        with pytest.raises(ValueError, match='too early') as e: learn.fit(1, cbs=Callback(**{name:throw}))
        assert not [note for note in e.value.__notes__ if 'then failed' in note], e.value.__notes__
    learn.fit(1)
    assert learn.train_iter==6

def test_fails_before_the_first_batch(processes, tmp_path): processes(2, _fails_early, tmp_path)   # noqa: F811

@pytest.mark.slow
def test_what_cannot_be_right_raises(processes, tmp_path): processes(4, _refuses, tmp_path)   # noqa: F811

@pytest.mark.slow
def test_in_other_ways(processes, tmp_path):   # noqa: F811
    learn = learner(tmp_path, one, GradientAccumulation(32), EMACallback(.9), train=ordered(8))
    learn.fit(1)
    processes(4, _ways, tmp_path, weights(learn))
