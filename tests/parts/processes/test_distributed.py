"""Several processes train, measure and predict as one process does, and as a plain PyTorch loop does."""
import copy, os, signal, warnings
from datetime import timedelta
from types import SimpleNamespace

import pytest, torch
import torch._dynamo   # for PyTorch's optimizers: once here, not for seconds in each forked process
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from learnkit.all import (AccumMetric, Callback, CheckpointCallback, DataLoaders, EMACallback, GradientAccumulation, ItemIndices, JsonLogger, Learner, LimitBatches, LossMonitor, MicroBatch,
                          ProgressCallback, Recorder, SaveModelCallback, ServiceLogger, StepsPerEpoch, StopAfter, StopOnSignal, ValidateEvery, accuracy, find_bs, mae, rank_distrib, rmse)
from learnkit.callbacks import intervals as every_module
from learnkit.data.loaders import set_epoch
from learnkit.processes import distributed as distributed_module
from learnkit.processes.shard import ShareBatches
from learnkit.processes.distributed import DistributedTrainer, GradientExchange, _sync_buffers, form_buckets
from learnkit.recovery.file import list_checkpoints
from learnkit.processes.diloco import DiLoCo
from learnkit.processes.launch import timeout_of
from learnkit.processes.shard import shard_loader
from learnkit.processes.distributed import sync_norms, unsync_norms
from learnkit.speed.memory import ChannelsLast
from toys import few, slow

torch.set_num_threads(1)

def data(n):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, 4, generator=g)
    return TensorDataset(x, x.sum(1, keepdim=True) + .3*torch.randn(n, 1, generator=g))

def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4,3), nn.BatchNorm1d(3), nn.Linear(3,1))

def learner(train, valid, model=None, **kw):
    learn = Learner(DataLoaders(train, valid), model or net(), nn.MSELoss(), torch.optim.SGD, lr=.1, metrics=[mae, rmse, AccumMetric(lambda p,t: (p-t).abs().max())], **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(ProgressCallback)

def weights(model): return torch.cat([p.detach().flatten().clone() for p in model.parameters()])
def state(model): return torch.cat([v.double().flatten() for v in model.state_dict().values()])
def everywhere(t):
    "That of each process"
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t)
    return parts

# the processes: forked, as a second import of torch takes longer than all the rest

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=60))
    try: f(rank, world, *args)
    finally: dist.destroy_process_group()

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_starts, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run
def _starts(rank, world, path, f, args): _inside(rank, world, path, f, args)

# validation and prediction

def shards(ds, bs, rank, world, shuffle=False): return DataLoader(ds, bs, sampler=DistributedSampler(ds, world, rank, shuffle=shuffle))

def _validates(rank, world, sizes):
    for n,bs in sizes:
        ds = data(n)
        learn = learner(DataLoader(ds, 4), DataLoader(ds, n))
        alone = learner(DataLoader(ds, 4), DataLoader(ds, n))
        for shuffle in (False, True):
            dl = shards(ds, bs, rank, world, shuffle)
            assert torch.allclose(torch.tensor(learn.validate(dl=dl)), torch.tensor(alone.validate()), rtol=1e-5, atol=1e-6), (n, bs)
            for kw in (dict(), dict(with_input=True, with_loss=True)):
                for a,b in zip(learn.get_preds(dl=dl, **kw), alone.get_preds(**kw), strict=True): assert torch.equal(a, b) or torch.allclose(a, b, atol=1e-6), (n, bs, kw)
            own = learn.get_preds(dl=dl, reorder=False)
            assert len(own[0])==len(range(rank, n, world))
            if not shuffle: assert torch.equal(own[1], ds[rank::world][1])
        assert torch.allclose(torch.tensor(learn.validate(dl=DataLoader(ds, bs))), torch.tensor(alone.validate()), rtol=1e-5, atol=1e-6)   # each one all of it
        assert sum(isinstance(cb, ShareBatches) for cb in learn.cbs)==1

@pytest.mark.parametrize('world,sizes', [(2, [(9,4), (9,1), (10,3), (8,4), (3,2)]), (3, [(9,2), (10,2), (4,1)])])
def test_means_and_predictions_of_all_rows_once(processes, world, sizes):
    "9 rows of 3 or 2 processes, with batches of which the last is padding only, or partly, or has none"
    processes(world, _validates, sizes)

def _wrapped(rank, world):
    "The model of a user who wrapped it himself waits for the others at each call, in validation too"
    ds = data(9)
    dl = shards(ds, 4, rank, world)
    learn = learner(shards(data(8), 4, rank, world), dl, DDP(net()), cbs=[ItemIndices])
    alone = learner(DataLoader(ds, 9), DataLoader(ds, 9))
    for m in (alone.model, learn.model.module): m[1].running_mean.add_(.5)
    assert torch.allclose(torch.tensor(learn.validate()), torch.tensor(alone.validate()), rtol=1e-5)
    learn.fit(2, cbs=Callback(after_epoch=lambda cb: cb.learn.mode=='fit' and cb.learn.get_preds()))
    first,*others = everywhere(weights(learn.model))
    assert all(torch.equal(first, o) for o in others) and not torch.equal(first, weights(net()))
    for own in everywhere(torch.tensor(learn.recorder.history['valid_loss'], dtype=torch.float64)): assert own.tolist()==learn.recorder.history['valid_loss']
    assert len(learn.get_preds()[0])==9
    one = data(1)   # of which the second process has none
    alone.model.load_state_dict(learn.model.module.state_dict())
    assert learn.validate(dl=shards(one, 1, rank, world))[0]==pytest.approx(nn.functional.mse_loss(alone.model.eval()(one.tensors[0]), one.tensors[1]).item(), rel=1e-5)

def test_a_model_that_is_wrapped_already(processes): processes(2, _wrapped)

class EachTwice:
    "A user-written sampler that depends on the process"
    def __init__(self, rank): self.rank = rank
    def __iter__(self): return iter([self.rank*8+i//2 for i in range(16)])
    def __len__(self): return 16

def _own_wrapper(rank, world):
    ds = TensorDataset(torch.arange(16.)[:,None].expand(16, 4), torch.zeros(16, 1))
    samplers = dict(plain=dict(shuffle=True), own=dict(sampler=EachTwice(rank)), divided=dict(sampler=DistributedSampler(ds, world, rank)))
    for name,kw in samplers.items():
        seen = []
        learner(DataLoader(ds, 4, **kw), None, DDP(nn.Linear(4, 1)), cbs=Callback(before_batch=lambda cb: seen.extend(cb.learn.x[:,0].tolist()))).fit(1)
        of_all = sorted(torch.cat(everywhere(torch.tensor(seen))).tolist())
        assert of_all==sorted([*range(16)]*(2 if name=='own' else 1)), (name, of_all)

def test_what_a_model_wrapped_already_trains_on(processes):
    "It trained on each sample twice an epoch, without a warning; with a plain model the data are sharded"
    processes(2, _own_wrapper)

@pytest.mark.parametrize('make', [lambda x,y: dict(x=x, y=y), lambda x,y: ((x, dict(more=x)), y), lambda x,y: dict(x=x, n=torch.tensor(3), names=['a']*len(x), y=y)])
@pytest.mark.parametrize('bs', [1,2,3,4,5])
def test_whatever_a_batch_is(make, bs):
    "The second of two processes, which has 4 of 9 rows, and one that is repeated"
    class Model(nn.Module):
        def __init__(self): super().__init__(); self.a = nn.Linear(4,1)
        def forward(self, x=None, **kw): return self.a(x[0] if isinstance(x, (tuple,list)) else x)
    ds,seen,calls = data(9),[],[]
    dl = DataLoader(ds, bs, sampler=DistributedSampler(ds, 2, 1, shuffle=False), collate_fn=lambda rows: make(*map(torch.stack, zip(*rows))))
    learn = Learner(DataLoaders(dl, dl), Model(), nn.MSELoss(), metrics=mae)
    learn.model.register_forward_hook(lambda *args: calls.append(1))
    loss,_ = learn.validate(cbs=[ShareBatches(), Callback(after_loss=lambda cb: seen.append(cb.learn.yb[0]))])
    want = torch.cat([ds[i][1][None] for i in (1,3,5,7)])
    assert torch.equal(torch.cat(seen), want) and len(calls)==-(-5//bs)   # it's called for each batch
    assert loss==pytest.approx(nn.functional.mse_loss(learn.model.a(ds[1::2][0]), want).item(), rel=1e-5)

# training

def by_hand(rank, world, ds, bs, n_epoch, seed, n_acc=1):
    "A plain PyTorch loop, as in a tutorial"
    model = DDP(net())
    opt = torch.optim.SGD(model.parameters(), lr=.1)
    sampler = DistributedSampler(ds, world, rank, shuffle=True, seed=seed)
    for epoch in range(n_epoch):
        sampler.set_epoch(epoch)
        for x,y in DataLoader(ds, bs, sampler=sampler):
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
            opt.zero_grad()
    return model.module

def _trains(rank, world):
    ds,valid = data(22),data(9)
    learn = learner(DataLoader(ds, 4, shuffle=True), DataLoader(valid, 3), net(rank))   # weights of their own to begin with
    model,dls,loaders = learn.model,learn.dls,[*learn.dls.loaders]
    trainer = DistributedTrainer()
    torch.manual_seed(5 + rank)
    learn.fit(2, cbs=[trainer, see := Sees()])
    hand = by_hand(rank, world, ds, 4, 2, trainer.seed)
    assert torch.equal(weights(hand), weights(model)) and (rank or torch.equal(state(hand), state(model)))
    assert all(torch.equal(state(model), o) for o in everywhere(state(model)))   # averages too, as a validation follows: it's that of process 0
    assert learn.model is model and learn.dls is dls and dls.loaders==loaders and learn.opt is not None and 'run' not in vars(trainer)
    assert see.seen==[('DistributedDataParallel','DistributedSampler'), ('DistributedDataParallel','SequentialSampler')]*2
    # over all processes, each row once; batch norms have the averages of process 0, as PyTorch's wrapper has it
    parts = torch.stack(everywhere(torch.tensor([r[k] for r in learn.recorder.history for k in ('valid_loss','mae','rmse')])))
    assert torch.equal(parts, parts[:1].expand_as(parts))
    assert torch.allclose(parts[0,-3:], torch.tensor(learn.validate()[:3]), rtol=1e-5)   # which is of all rows, in each process

class Sees(Callback):
    def __init__(self): self.seen = []
    def before_fetch(self):
        if not self.learn.iter: self.seen.append((type(self.learn.model).__name__, type(self.learn.dl.sampler).__name__))

def test_as_by_hand(processes): processes(2, _trains)

class Curriculum(Callback):
    "Replaces the data from the second epoch on"
    def __init__(self, dl): self.dl,self.seen = dl,[]
    def before_epoch(self):
        if self.epoch==1: self.learn.dls.train = self.dl
    def before_batch(self):
        if self.training and self.epoch>0: self.seen += self.x[:,0].int().tolist()

def _replaces(rank, world):
    rows = torch.arange(12.)[:,None].repeat(1, 4)
    other = DataLoader(TensorDataset(rows, torch.zeros(12, 1)), 2)
    cb = Curriculum(other)
    learn = learner(DataLoader(data(8), 2), None)
    learn.fit(3, cbs=cb)
    assert len(cb.seen)==12 and len({*cb.seen})==6, cb.seen   # half of the rows, in both epochs
    others = everywhere(torch.tensor(sorted({*cb.seen})))
    assert sorted(torch.cat(others).tolist())==[*range(12)] and learn.dls.train is other

def test_a_loader_that_a_callback_replaces_is_sharded(processes):
    "Each process trained on all of it"
    processes(2, _replaces)

class Assigns(Callback):
    "Assigns to `learn.dl` in `before_train`, in its order; records the rows of each epoch"
    def __init__(self, make, order=0): self.make,self.order,self.rows = make,order,[]
    def before_train(self):
        self.rows.append([])
        self.learn.dl = self.make(self.learn)
    def before_batch(self):
        if self.training: self.rows[-1] += self.x[:,0].int().tolist()

def numbered(n=12):
    rows = torch.arange(float(n))[:,None].repeat(1, 4)
    return TensorDataset(rows, torch.zeros(n, 1))

def _assigns(rank, world):
    def rows_of(make, order=0, shard=True):
        cb = Assigns(make, order)
        learner(DataLoader(data(8), 2), None).fit(2, cbs=[cb, DistributedTrainer(shard=shard)])
        return cb.rows
    other = DataLoader(numbered(), 2, shuffle=True)
    for order in (-50, 0):
        epochs = rows_of(lambda learn: other, order)
        for rows in epochs:
            both = torch.cat(everywhere(torch.tensor(rows)))
            assert sorted(both.tolist())==[*range(12)], (order, rows)
        assert epochs[0]!=epochs[1]   # each epoch has its own order
    # what is a shard already stays, and so does what is to be taken as it is
    own = DataLoader(numbered(), 2, sampler=DistributedSampler(numbered(), world, rank, shuffle=True))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        epochs = rows_of(lambda learn: own)
        assert [len(rows) for rows in epochs]==[6, 6] and epochs[0]!=epochs[1]
        assert [len(rows) for rows in rows_of(lambda learn: learn.dls.train)]==[4, 4]
        assert [len(rows) for rows in rows_of(lambda learn: other, shard=False)]==[12, 12]
    with pytest.warns(UserWarning, match='data, of 12 and 13 samples. Each trains on its own'):
        epochs = rows_of(lambda learn: DataLoader(numbered(12+rank), 12))
    assert [len(rows) for rows in epochs]==[12, 12]   # as many as the shortest
    with pytest.warns(UserWarning, match='this list is not sharded.*`learn.dls.train`.*`learn.batches.replace'):
        epochs = rows_of(lambda learn: [numbered()[:4]])
    assert epochs==[[0, 1, 2, 3]]*2

def test_a_loader_that_is_assigned_in_before_train_is_sharded(processes):
    "Each process trained on all of it, without a warning; and `set_epoch` of its sampler was not called"
    processes(2, _assigns)

def _shows(rank, world):
    "Process 0 alone logs rows and calls its progress bar; afterwards `logger`, `run` and `dls` are what they were"
    rows,bar,predicted = [],[],[]
    class Bar(Callback):
        name = 'progress'
        def after_epoch(self): bar.append(self.learn.epoch)
    class Predicts(Callback):
        def after_epoch(self):
            if self.learn.mode=='fit': self.learn.get_preds()
        def after_pred(self):
            if self.learn.mode=='predict': predicted.append(len(self.learn.pred))
    learn = learner(DataLoader(data(22), 4, shuffle=True), DataLoader(data(9), 3))
    learn.logger = log = rows.append
    learn.fit(2, cbs=[DistributedTrainer(), shows := Bar(), Predicts()])
    assert bar==([] if rank else [0,1]) and len(rows)==(0 if rank else 2)
    assert learn.logger is log and shows.run and sum(predicted)==2*(6-3*rank)   # three batches of three, of which one is the second process's
    predicted.clear()
    learn.get_preds(cbs=Predicts)
    assert sum(predicted)==6-3*rank

def test_process_0_shows_what_happens(processes): processes(2, _shows)

def _with_others(rank, world, path):
    "Together with callbacks that replace loaders, models, batches; and afterwards after an error"
    ds,valid = data(24),data(9)
    def run(*cbs, n=2, **kw):
        torch.manual_seed(1)
        learn = learner(DataLoader(ds, 4, shuffle=True), DataLoader(valid, 3), path=path/f'{rank}')
        with learn.distrib_ctx(): learn.fit(n, cbs=[*cbs], **kw)
        assert all(torch.equal(weights(learn.model), o) for o in everywhere(weights(learn.model))) and not isinstance(learn.model, DDP)
        return learn
    plain = run()
    assert torch.equal(weights(run(ItemIndices(), SaveModelCallback()).model), weights(plain.model))
    for cb in (EMACallback(), MicroBatch(2), GradientAccumulation(8), LimitBatches(2, 1)): run(cb, n=1)
    def whole(cb): got.extend([cb.learn.get_preds()[1]]*(cb.learn.mode=='fit'))
    got = []
    run(Callback(after_epoch=whole), n=1)
    assert torch.equal(got[-1], valid.tensors[1])
    for ev in ('before_fit','after_loss','after_fit'):
        learn = learner(DataLoader(ds, 4), DataLoader(valid, 3))
        model,dls = learn.model,learn.dls
        def fail(cb): raise ArithmeticError(ev)
        with pytest.raises(ArithmeticError), learn.distrib_ctx(): learn.fit(1, cbs=Callback(**{ev:fail}))
        assert learn.model is model and learn.dls is dls

def test_with_other_callbacks(processes, tmp_path): processes(2, _with_others, tmp_path)

class PowerCut(Callback): acts = 'nothing'   # without it, it is the same run

def _resumes(rank, world, path, *cbs):
    "From a checkpoint in the middle of the second epoch to what the run without a break gives"
    ds = data(22)
    def run(folder, **kw):
        torch.manual_seed(1)
        learn = learner(DataLoader(ds, 4, shuffle=True), DataLoader(ds, 4), path=path/folder)
        with learn.distrib_ctx(): learn.fit(3, cbs=[CheckpointCallback('2ba'), *cbs], **kw)
        return weights(learn.model)
    whole = run('a')
    def stop(cb):
        if cb.learn.train_iter==5: raise KeyboardInterrupt
    torch.manual_seed(1)
    learn = learner(DataLoader(ds, 4, shuffle=True), DataLoader(ds, 4), path=path/'b')
    with pytest.raises(KeyboardInterrupt), learn.distrib_ctx(): learn.fit(3, cbs=[CheckpointCallback('2ba'), PowerCut(after_step=stop), *cbs])
    dist.barrier()
    assert torch.equal(run('b', resume='auto'), whole)

def test_resume(processes, tmp_path): processes(2, _resumes, tmp_path)

class Counts(Callback):
    "Counts something different in each process, and weights the loss with it"
    saves = 'n','seen'
    n,seen = 0,None
    def after_loss(self):
        if not self.learn.training: return
        self.n += 1 + rank_distrib()
        self.seen = torch.full((2,), 1.*self.n)
        self.learn.loss_grad = self.learn.loss_grad*self.seen.mean()/8

@pytest.mark.slow
def test_resume_with_callbacks_that_differ(processes, tmp_path): processes(2, _resumes, tmp_path, Counts)

def _one_is_told(rank, world, path, epoch, training):
    "A signal to one process ends all after the same batch; resumed, they end like an uninterrupted run"
    ds = data(22)
    def run(folder, *cbs, **kw):
        torch.manual_seed(1)
        learn = learner(DataLoader(ds, 4, shuffle=True), DataLoader(ds, 4), path=path/folder)
        with learn.distrib_ctx(): learn.fit(3, cbs=[CheckpointCallback('1ep'), StopOnSignal(), *cbs], **kw)
        return weights(learn.model)
    whole = run('a')
    def tell(cb):
        learn = cb.learn
        if at or learn.epoch<epoch or learn.training!=training: return
        at.append(learn.train_iter)
        if rank==1: os.kill(os.getpid(), signal.SIGTERM)
    at = []
    with pytest.raises(SystemExit) as e: run('b', PowerCut(after_pred=tell))
    assert e.value.code==143 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    dist.barrier()
    n = int(list_checkpoints(path/'b'/'checkpoints'/'fit-1')[0].stem.split('-')[1])
    assert at[0]<n<=min(at[0]+1, 9) or n==at[0]==9, (n, at)   # in that batch, or at the end
    dist.barrier()
    assert torch.equal(run('b', resume='auto'), whole)

@pytest.mark.parametrize('epoch,training', [(1, True), *slow((1, False), (0, False), (2, True), (2, False))])
def test_a_signal_to_one_of_them_ends_all(processes, tmp_path, epoch, training): processes(2, _one_is_told, tmp_path, epoch, training)

# the memory format, which PyTorch's wrapper records

def _channels_last(rank, world):
    "The elements of a gradient have their places; whoever changes the format too late is told"
    x = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    def conv(): torch.manual_seed(0); return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 1))
    def fit(*cbs, model=None):
        grads,learn = [],learner(DataLoader(TensorDataset(x, x[:, 0, 0, :1]), 2), None, model or conv())
        learn.fit(1, cbs=[*cbs, Callback(before_step=lambda cb: grads.append(next(cb.learn.model.parameters()).grad.clone()))])
        return grads
    for a,b in zip(fit(), fit(ChannelsLast()), strict=True): torch.testing.assert_close(a, b)
    def change(cb): cb.learn.model.module.to(memory_format=torch.channels_last)
    for event in ('before_fit','before_batch'):
        with pytest.raises(ValueError, match='memory format of 0.weight has changed'): fit(Callback(**{event:change}))
    with pytest.raises(ValueError, match='before you wrap the model'): fit(ChannelsLast(), model=DDP(conv()))

def test_gradients_in_channels_last_format(processes): processes(2, _channels_last)

def test_sparse_gradients_that_are_averaged_before_the_step_raise():
    emb = nn.Embedding(4, 2, sparse=True)
    emb(torch.tensor([1])).sum().backward()
    exchange = GradientExchange([emb.weight])
    exchange.learn = SimpleNamespace(agreement=SimpleNamespace(_agree_at=lambda point: None))
    with pytest.raises(ValueError, match='cannot sum sparse gradients: write `sparse=False`'): exchange.before_step()

# loaders that can be sharded, and those that cannot

def test_shard_loader():
    ds = data(10)
    class Stream(IterableDataset):
        def __iter__(self): return iter(ds)
    def dl(**kw): return DataLoader(ds, **{'batch_size':4, **kw})
    StatefulDataLoader = pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader   # its batch sampler has a length for a stream, too
    for bad in ([1,2], DataLoader(Stream(), 4), StatefulDataLoader(Stream(), 4), dl(batch_size=None)): assert shard_loader(bad) is None
    for drawn in (dl(sampler=WeightedRandomSampler([1.]*10, 10)), DataLoader(ds, batch_sampler=[[1,2],[3]])): assert shard_loader(drawn) is not None
    given = dl(sampler=DistributedSampler(ds, 2, 0))
    assert shard_loader(given) is given

class Shuffles(Sampler):
    "Draws anew in each epoch, of which `set_epoch` tells the number"
    epoch = 0
    def set_epoch(self, epoch): self.epoch = epoch
    def __len__(self): return 10
    def __iter__(self): return iter(torch.randperm(10, generator=torch.Generator().manual_seed(self.epoch)).tolist())

@pytest.mark.parametrize('make', [lambda s: dict(batch_size=5, sampler=s), lambda s: dict(batch_sampler=BatchSampler(s, 5, False))])
def test_a_sharded_sampler_is_told_the_epoch(make):
    def draws(dl): return [x.tolist() for epoch in range(3) for x,_ in (set_epoch(dl, epoch), dl)[1]]
    whole,sharded = DataLoader(data(10), **make(Shuffles())),shard_loader(DataLoader(data(10), **make(Shuffles())))
    assert sharded is not whole and draws(sharded)==draws(whole) and draws(sharded)[:2]!=draws(sharded)[2:4]

def test_alone():
    "Nothing happens where there is one process; without a group it's an error"
    ds = data(10)
    a,b = learner(DataLoader(ds, 4), DataLoader(ds, 4)),learner(DataLoader(ds, 4), DataLoader(ds, 4))
    with a.distrib_ctx(): a.fit(1)
    b.fit(1)
    assert torch.equal(weights(a.model), weights(b.model))
    with pytest.raises(RuntimeError, match='torchrun'): a.fit(1, cbs=DistributedTrainer)
    a.fit(1)

@pytest.mark.parametrize('name, hint', [('find_unused_parameter', 'find_unused_parameters'), ('sync_norm', 'sync_bn')])
def test_misspelled_arguments_raise_in_one_process_too(name, hint):
    for f in (DistributedTrainer, lambda **kw: learner([], []).distrib_ctx(**kw).__enter__()):
        with pytest.raises(TypeError, match=f'no argument `{name}`: did you mean `{hint}`'): f(**{name:True})
    assert DistributedTrainer(find_unused_parameters=True, bucket_cap_mb=1).kwargs

# batch norms over all processes

def test_norms_are_converted_and_put_back():
    model = nn.Sequential(nn.Linear(4,3), nn.Sequential(nn.BatchNorm1d(3, affine=False), nn.ReLU()), nn.BatchNorm1d(3))
    before,ps,was = [*model.modules()],[*model.parameters()],state(model)
    for _ in range(2):
        old = sync_norms(model)
        assert [type(m) for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]==[nn.SyncBatchNorm]*2 and [*old]==['1.0','2']
        assert torch.equal(state(model), was)
        model.eval()
        unsync_norms(model, old)
        assert [*map(id, model.modules())]==[*map(id, before)] and [*map(id, model.parameters())]==[*map(id, ps)] and not model[2].training
    assert sync_norms(nn.Linear(1,1))=={}

def test_a_norm_in_two_places_is_put_back_in_both():
    norm = nn.BatchNorm1d(3)
    model = nn.ModuleDict(dict(a=nn.Sequential(nn.Linear(4,3), norm), b=nn.Sequential(nn.Linear(4,3), norm)))
    old = sync_norms(model)
    assert type(model.a[1]) is type(model.b[1]) is nn.SyncBatchNorm
    unsync_norms(model, old)
    assert model.a[1] is model.b[1] is norm

def _own_norms(rank, world):
    "`broadcast_buffers=False`, by its old name or its new one: each process keeps its own averages"
    for kw,are_equal in ({}, True), (dict(broadcast_buffers=False), False), ({_sync_buffers:False}, False):
        learn = learner(DataLoader(data(8), 4), DataLoader(data(8), 4))
        learn.fit(1, cbs=(trainer := DistributedTrainer(**kw)))
        copy.deepcopy(trainer)   # it has let go of the process group
        one,other = everywhere(learn.model[1].running_mean)
        assert torch.equal(one, other)==are_equal, kw

def test_each_process_keeps_its_own_averages_of_norms(processes): processes(2, _own_norms)

def _syncs(rank, world):
    "On the CPU the layers raise: so the fit fails in its first batch, and the layers seen there are replaced again"
    ds = data(8)
    learn = learner(DataLoader(ds, 4), DataLoader(ds, 4))
    norm,seen = learn.model[1],[]
    with pytest.raises(ValueError, match='on the CPU'): learn.fit(1, cbs=DistributedTrainer(sync_bn=True))
    trainer = DistributedTrainer()
    class Converts(Callback):
        order = trainer.order+1
        def before_fit(self): trainer.norms = sync_norms(self.learn.model.module)
        def before_batch(self): seen.append(type(self.learn.model.module[1]))
    with pytest.raises(ValueError, match='SyncBatchNorm expected'): learn.fit(1, cbs=[trainer, Converts()])
    assert seen==[nn.SyncBatchNorm] and learn.model[1] is norm

def test_synchronized_norms(processes): processes(2, _syncs)

def _seeded(rank, world, path, apart):
    learn = learner(DataLoader(data(8), 4), DataLoader(data(8), 4), path=path)
    torch.manual_seed(3 + rank*apart)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        with learn.distrib_ctx(): learn.fit(1, cbs=CheckpointCallback('1ep'))
    assert [w for w in said if 'bit for bit' in str(w.message)]==[]

@pytest.mark.slow
@pytest.mark.parametrize('apart', [0, 1])
def test_processes_seeded_differently_resume(processes, tmp_path, apart):
    "The checkpoint contains the random states of all processes"
    processes(2, _seeded, tmp_path, apart)

class ToFile(ServiceLogger):
    "A stand-in for a logging service that writes a file for each process"
    def open(self, id): return self.say('open', 'id1')
    def write(self, metrics, step): self.say('step', step)
    def close(self, status): self.say('close', status)
    def say(self, *what):
        with open(self.learn.path/f'service{dist.get_rank()}', 'a') as f: print(*what, file=f)
        return what[-1]

def _logs(rank, world, path):
    learn = learner(DataLoader(data(16), 4), DataLoader(data(8), 4), path=path, cbs=[JsonLogger(path/'log.jsonl'), ToFile(), LossMonitor('1ba')])
    with learn.distrib_ctx():
        for _ in range(2): learn.fit(1)
        learn.log_numbers(dict(test_accuracy=.9+rank))
    dist.barrier()
    rows = JsonLogger(path/'log.jsonl').read_log()
    assert [r['step'] for r in rows if 'batch_loss' in r]==[1,2,3,4] and [r['test_accuracy'] for r in rows if 'test_accuracy' in r]==[.9]
    first,last = [r['valid_loss'] for r in rows if 'valid_loss' in r]
    assert [last]==pytest.approx(learn.recorder.history['valid_loss'])   # of this process, which has the mean of all

@pytest.mark.slow
def test_only_the_main_process_writes(processes, tmp_path):
    "Each process had its loggers, and nothing showed that a file, or a service, gets each row once"
    processes(2, _logs, tmp_path)
    assert [f.name for f in tmp_path.glob('service*')]==['service0'] and [f.name for f in tmp_path.glob('*.jsonl')]==['log.jsonl']
    said = (tmp_path/'service0').read_text().splitlines()
    assert said==['open id1', 'step 1', 'step 2', 'close finished', 'open id1', 'step 3', 'step 4', 'close finished', 'open id1', 'step 4', 'close finished']

# intervals that each process measures for itself

def _stops(rank, world, much, every):
    "The clock of one process is faster, and its texts differ"
    seen,t = [],[0.]
    every_module.monotonic = lambda: t[0]
    class Texts:
        def __iter__(self):
            g = torch.Generator().manual_seed(rank)
            while True: yield torch.zeros(2, int(torch.randint(1, 9, (), generator=g)), dtype=torch.long),torch.zeros(2, 1)
    class Ticks(Callback):
        order,run_valid = -100,False
        def after_batch(self): t[0] += .005*(1+rank) + .004*(self.learn.iter%3)
    class Embeds(nn.Module):
        def __init__(self): super().__init__(); self.emb = nn.Embedding(1, 1)
        def forward(self, x): return self.emb(x).mean(1)
    class Sees(Callback):
        def before_validate(self): seen.append(self.learn.train_iter)
    learn = learner(Texts(), [(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 1))], Embeds(),
                    cbs=[DistributedTrainer(shard=False), Ticks, StopAfter(much), ValidateEvery(every), Sees])
    learn.fit(1)
    n = everywhere(torch.tensor([learn.train_iter, len(seen), sum(seen)]))
    assert all(torch.equal(n[0], o) for o in n), n
    least,most = (18, 21) if much[-1]=='s' else (27, 42)   # .014 s, or 9 tokens, a batch
    assert least<=learn.train_iter<=most and len(seen)==3, (learn.train_iter, seen)

@pytest.mark.parametrize('much,every', [('0.25s', '0.1s'), *slow(('300tok', '120tok'))])
def test_processes_stop_and_validate_at_the_same_batch(processes, much, every):
    "By the clock of the fastest, or by its tokens: each for itself would wait for the others forever"
    processes(2, _stops, much, every)

# epochs that continue in the data

def _steps_go_on(rank, world):
    ds,seen = data(14),[]
    learn = learner(DataLoader(ds, 2, shuffle=True), DataLoader(ds, 7), nn.Linear(4, 1), cbs=[StepsPerEpoch(5), DistributedTrainer()])
    class Sees(Callback):
        order,run_valid = 1000,False
        def after_fetch(self): seen.append(self.learn.batch[1].flatten())
    learn.fit(3, cbs=Sees())
    assert learn.train_iter==15==len(seen) and len(learn.recorder.history)==3
    passes = [torch.cat(seen[i:i+4]) for i in (0, 4, 8)]   # 7 samples of each process, in batches of 2
    joined = [torch.cat(everywhere(p)) for p in passes]
    assert all(torch.equal(p.sort()[0], ds.tensors[1].flatten().sort()[0]) for p in joined), 'an item is missing, or there twice'
    assert not torch.equal(passes[0], passes[1])
    assert torch.equal(*everywhere(weights(learn.model)))

@pytest.mark.slow
def test_steps_per_epoch_divides_each_pass(processes): processes(2, _steps_go_on)

# resumed in the middle of an accumulation

def _resumes_accumulating(rank, world, folder):
    def fit(name, *cbs):
        learn = learner(DataLoader(data(24), 2, shuffle=True), DataLoader(data(9), 3), path=folder/name, cbs=[CheckpointCallback('1ba'), GradientAccumulation(6)])
        torch.manual_seed(5)
        learn.fit(2, cbs=cbs, resume='auto')
        return learn
    whole = fit('whole')
    ends = Callback(after_batch=lambda cb: os.kill(os.getpid(), signal.SIGINT) if cb.learn.training and cb.learn.train_iter==4 else None)   # one batch of three after a step
    ends.acts,ends.order = 'nothing',200
    with pytest.raises(KeyboardInterrupt): fit('cut', ends)
    cut = fit('cut')
    assert torch.equal(weights(cut.model), weights(whole.model)) and all(torch.equal(first, o) for first,*others in [everywhere(weights(cut.model))] for o in others)
    assert [r['train_loss'] for r in cut.recorder.history.epochs]==[r['train_loss'] for r in whole.recorder.history.epochs]

@pytest.mark.slow
def test_gradients_of_each_process_are_in_a_checkpoint(processes, tmp_path): processes(2, _resumes_accumulating, tmp_path)

# a run continues in a different number of processes

class Cut(PowerCut):
    "Records the samples of training batches, and interrupts the run after batch `n`"
    order = 200
    def __init__(self, n, seen): super().__init__(); self.n,self.seen = n,seen
    def after_batch(self):
        if self.learn.training: self.seen.append((self.learn.epoch, self.learn.xb[0][:,0].tolist(), self.learn.pct_train))
        if self.learn.training and self.learn.train_iter==self.n: raise KeyboardInterrupt

def _goes_on(rank, world, path, n, much, bs):
    "Train up to batch `n`, or to the end if it is None; write the samples to a file"
    torch.manual_seed(1)
    ds = TensorDataset(torch.arange(96.)[:,None].expand(96, 4)/96, torch.zeros(96, 1))
    learn,seen = learner(DataLoader(ds, bs, shuffle=True), DataLoader(ds, 8), path=path),[]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        try: learn.fit(much, resume='auto', cbs=[CheckpointCallback('1ba'), Cut(n, seen)])
        except KeyboardInterrupt: assert n
    torch.save((seen, [str(w.message) for w in said], learn.train_iter), path/f'seen{world}-{rank}')

@few(0, 3)
@pytest.mark.parametrize('first,then,much', [(2, 1, 2), (1, 2, 2), (2, 4, 2), (4, 2, '10ba'), (2, 1, '20ba')])
def test_continues_in_another_number(processes, tmp_path, first, then, much):
    "Each process has batches of 4 of 96 samples; the run is interrupted in the middle of the second epoch"
    half = 96//4//first//2
    def run(world, n):
        if world>1: processes(world, _goes_on, tmp_path, n, much, 4)
        else: _goes_on(0, 1, tmp_path, n, much, 4)
        (tmp_path/'store').unlink(missing_ok=True)
        return [torch.load(tmp_path/f'seen{world}-{r}', weights_only=False) for r in range(world)]
    before,after = run(first, 3*half),run(then, None)
    warned = [w for w in after[0][1] if 'This run had' in w]
    assert len(warned)==1 and f'This run had {first} process' in warned[0] and f'continues with {then}: an optimizer step has {4*then} samples instead of {4*first}' in warned[0], after[0][1]
    assert not any('distributed_trainer' in w for _,said,_ in after for w in said), after
    if type(much) is str: assert [o[2] for o in after]==[int(much[:-2])]*then
    else:
        items = sorted(round(96*x) for seen,*_ in (*before, *after) for e,xs,_ in seen if e==1 for x in xs)
        assert len(items)==96 and (1 in (first, then) or items==[*range(96)])   # one process has an order of its own
        assert after[0][0][0][2]==pytest.approx(.75 + 2*then/96)   # half of the second epoch, and one batch more

@pytest.mark.slow
def test_the_same_batches_in_another_number(processes, tmp_path):
    "Each step has 8 samples as before, so the position stays"
    processes(2, _goes_on, tmp_path, 18, 2, 4)
    _goes_on(0, 1, tmp_path, None, 2, 8)
    seen,said,n = torch.load(tmp_path/'seen1-0', weights_only=False)
    assert len(seen)==6 and n==24 and any('had 2 processes and continues with 1: the data is sharded differently' in w for w in said)

def _four_go_on(rank, world, path):
    """DistributedDataParallel rebuilt its buckets after the first batch: then more than two processes sum in a
    different order"""
    def run(where, n=None):
        torch.manual_seed(1)
        learn = learner(DataLoader(data(96), 4, shuffle=True), DataLoader(data(9), 3), path=path/where)
        try: learn.fit(2, resume='auto', cbs=[CheckpointCallback('1ba'), *[Cut(n, [])]*(n is not None)])
        except KeyboardInterrupt: assert n
        return state(learn.model)
    whole = run('whole')
    run('cut', 7)
    assert torch.equal(run('cut'), whole)

@pytest.mark.slow
def test_four_processes_continue_bit_for_bit(processes, tmp_path): processes(4, _four_go_on, tmp_path)

def _limits_waits(rank, world):
    seen = Callback(before_train=lambda cb: limits.extend(timeout_of(group) for group in (dist.group.WORLD, cb.learn.distributed_trainer.gradient_group)))
    train = DataLoader(data(16), 2)
    for cbs,seconds in (DistributedTrainer(timeout=7.),7), (DistributedTrainer(),60), ([DistributedTrainer(timeout=9.), DiLoCo(2, island=2)],9):
        limits = []
        learner(train, None).fit(1, cbs=[cbs, seen] if not isinstance(cbs, list) else [*cbs, seen])
        assert limits==[seconds]*2 and timeout_of(dist.group.WORLD)==60, (limits, seconds)

def test_collectives_fail_after_the_timeout_of_the_fit(processes): processes(4, _limits_waits)

def _forms_buckets(rank, world):
    "Gradients of zero form the buckets, unseen by callbacks; a model that fits into the first bucket needs none"
    def wrapped(change=lambda m: None, **kw):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        change(model)
        return model,DDP(model, **{_sync_buffers:False, **kw})
    def backwards(f):
        with pytest.MonkeyPatch.context() as m: m.setattr(torch.autograd, 'backward', lambda *args, f=torch.autograd.backward: (called.append('backward'), f(*args))); f()
        return [called.pop() for _ in [*called]]
    called,mark = [],torch.full((3, 4), 7.)
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(rank))
    def watch(m): m.register_forward_hook(lambda *args: called.append('forward')); m[0].weight.grad = mark; m[2].weight.requires_grad_(False)
    for cap in (dict(bucket_cap_mb=1e-5), {}):
        model,ddp = wrapped(watch, **cap)
        before = copy.deepcopy(model.state_dict())
        assert backwards(lambda: form_buckets(ddp))==['backward']*len(cap)   # `called` has nothing else
        assert ddp.module is model and model[0].weight.grad is mark and all(p.grad is None for p in [*model.parameters()][1:])
        assert all(torch.equal(v, before[k]) for k,v in model.state_dict().items()) and model.training
        model[0].weight.grad = None
        for _ in range(3): ddp(x).sum().backward()   # every parameter that is trained gets its gradient, and nothing else is waited for
        called.clear()
    for hook in (nn.Parameter.register_hook, nn.Parameter.register_post_accumulate_grad_hook):   # such as an optimizer in the backward pass
        model,ddp = wrapped(lambda m: hook(m[2].bias, lambda g: called.append('hook')), bucket_cap_mb=1e-5)
        form_buckets(ddp)
        assert not called

def test_buckets_are_formed_before_the_first_batch(processes): processes(2, _forms_buckets)

class Lacks:
    "Stands in for a version of `torch.distributed` that lacks a function"
    def __init__(self, *names): self.names = names
    def __getattr__(self, k):
        if k in self.names: raise AttributeError(k)
        return getattr(dist, k)

class Waits(Callback):
    acts = 'nothing'
    def before_batch(self): self.waits = self.learn.distributed_trainer.waits_in_forward

def _lacks_private_functions(rank, world, path):
    def fitted(where):
        torch.manual_seed(1)
        (learn := learner(DataLoader(data(24), 4), DataLoader(data(9), 3), path=path/where)).fit(2, cbs=(waits := Waits()))
        return state(learn.model),waits.waits
    whole,waits = fitted('a')
    with pytest.MonkeyPatch.context() as m:
        m.delattr(dist.Reducer, '_push_all_rebuilt_params')
        m.setattr(distributed_module, 'dist', Lacks('_broadcast_coalesced'))
        slower,waits_now = fitted('b')
    assert (waits, waits_now)==(False, True)
    torch.testing.assert_close(slower, whole)
    assert all(torch.equal(o, slower) for o in everywhere(slower))

def test_without_private_functions_it_is_slower_and_right(processes, tmp_path): processes(2, _lacks_private_functions, tmp_path)

def _own_lists(rank, world, path):
    "Process 1 compared its data with that of process 0, and raised"
    def run(where, n=None, add=0.):
        torch.manual_seed(1)
        batches = [(x+rank*(1+add), y-rank) for x,y in DataLoader(data(24), 4)]
        learn = learner(batches, DataLoader(data(9), 3), path=path/where)
        try: learn.fit(2, resume='auto', cbs=[DistributedTrainer(shard=False), CheckpointCallback('1ba'), *[Cut(n, [])]*(n is not None)])
        except KeyboardInterrupt: assert n
        return state(learn.model)
    whole = run('whole')
    run('cut', 7)
    with pytest.raises(ValueError, match='another run.*training data is'): run('cut', add=.5)   # process 1 has different data: both raise
    assert torch.equal(run('cut'), whole)

def test_data_of_each_process_continues(processes, tmp_path): processes(2, _own_lists, tmp_path)

# the model and the data in a fit are layers over the Learner's own

def _assigns_in_a_fit(rank, world):
    "Data that is assigned in the middle of a fit is sharded, too, and the Learner keeps it whole"
    first,later = DataLoaders(DataLoader(data(16), 2), DataLoader(data(4), 2)),DataLoaders(DataLoader(data(8), 2), DataLoader(data(4), 2))
    learn = learner(*first)
    model,seen = learn.model,[]
    def look(cb):
        seen.append((sum(len(b[0]) for b in cb.learn.dls.train), type(cb.learn.model)))
        if cb.epoch==1: cb.learn.dls = later
    cb = Callback(before_epoch=look)
    cb.order,cb.acts = 50,'alike'
    learn.fit(4, cbs=[cb, DistributedTrainer()])
    assert seen==[(8, DDP), (8, DDP), (4, DDP), (4, DDP)], seen
    assert learn.dls is later and learn.model is model and not learn.current_run.layers

def test_data_that_is_assigned_in_a_fit_is_sharded(processes): processes(2, _assigns_in_a_fit)

def _replaces_the_model(rank, world, wraps):
    learn = learner(DataLoader(data(16), 2), DataLoader(data(4), 2))
    model = learn.model
    def replace(cb): cb.learn.model = nn.Sequential(cb.learn.model) if wraps else net()
    cb = Callback(before_epoch=replace)
    cb.order,cb.acts = 50,'alike'
    with pytest.raises(Exception, match='contains the current wrapped' if wraps else 'cannot be replaced during a fit with several processes'): learn.fit(2, cbs=[cb, DistributedTrainer()])
    assert learn.model is model and not learn.current_run.layers

@pytest.mark.parametrize('wraps', [False, *slow(True)])
def test_a_model_that_would_train_without_the_others_raises(processes, wraps): processes(2, _replaces_the_model, wraps)

class Uneven:
    "A sampler of the same length that draws other indices"
    def __init__(self, drawn): self.drawn = drawn
    def __len__(self): return 8
    def __iter__(self): return iter(self.drawn)

def _draws_are_sent(rank, world):
    from learnkit.data import process
    from learnkit.processes.shard import SharedDraws
    sent = []
    with pytest.MonkeyPatch.context() as m:
        m.setattr(process, '_pickle', lambda x, pickled=process._pickle: sent.append(pickled(x)) or sent[-1])
        for drawn in ([*range(70_000, 0, -1)], [5, 3, 1, 2], [7], [], [[4, 2], [1]], ['a', 'b', 'c', 'd'], [*range(70_000), (1, 2)]):
            n = -(-len(drawn)//world)
            wanted = [drawn[i%len(drawn)] for i in range(rank, n*world, world)] if drawn else []
            sampler = SharedDraws(Uneven(drawn if rank==0 else 'nothing'))
            sent.clear()
            assert [*sampler]==wanted and len(sampler)==(n or -(-8//world))
            if all(type(i) is int for i in drawn): assert sum(map(len, sent))<1000   # none of the indices is pickled

@pytest.mark.parametrize('world', [2, *slow(3)])
def test_each_process_receives_only_its_draws(processes, world): processes(world, _draws_are_sent)
