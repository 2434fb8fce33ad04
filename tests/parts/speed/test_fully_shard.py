"""Sharded models: 2 and 4 processes that hold a shard each train, predict, save and resume as a plain PyTorch loop does
in one process."""
import os, random, signal, time, warnings
from datetime import timedelta
from functools import partial

import pytest, torch
from torch import distributed as dist, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Callback, CancelBatch, CheckpointCallback, CrossEntropyLossFlat, DataLoaders, DistributedTrainer, EMACallback, GradientAccumulation, GradientClip, Learner, MicroBatch, OptimizerMonitor, ProgressCallback, accuracy,
                          load_learner)
from learnkit.recovery.file import list_checkpoints, newest_checkpoint, read_checkpoint
from learnkit.processes.launch import call_in_all, call_in_first
from learnkit.data.process import is_sharded, whole
from learnkit.speed.fully_shard import FullyShard
from learnkit.speed.memory import RecomputeActivations, set_memory_format

torch.set_num_threads(1)

class Block(nn.Module):
    "A layer of a transformer"
    def __init__(self, d=8, drop=0.):
        super().__init__()
        self.n1,self.n2,self.att = nn.LayerNorm(d),nn.LayerNorm(d),nn.MultiheadAttention(d, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d,16), nn.GELU(), nn.Dropout(drop), nn.Linear(16,d))
    def forward(self, x):
        h = self.n1(x)
        x = x + self.att(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))

class Net(nn.Module):
    def __init__(self, seed=0, tied=False, norm=False, drop=0.):
        super().__init__()
        torch.manual_seed(seed)
        self.embed,self.blocks,self.head = nn.Embedding(8,8),nn.ModuleList(Block(drop=drop) for _ in range(2)),nn.Linear(8,8,bias=False)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        if tied: self.head.weight = self.embed.weight
    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks: x = b(x)
        return self.head(self.norm(x.mean(1)))

def data(n):
    x = torch.randint(0, 8, (n,5), generator=torch.Generator().manual_seed(3))
    return TensorDataset(x, x.sum(1)%8)

loss = nn.CrossEntropyLoss()
sgd = partial(torch.optim.SGD, momentum=.9)

def learner(model, cbs=(), world=1, opt_func=sgd, lr=.1, n=32, **kw):
    "Batches of 8 of all processes together"
    learn = Learner(DataLoaders(DataLoader(data(n), 8//world), DataLoader(data(11), 4)), model, loss, opt_func, lr=lr, metrics=accuracy, cbs=cbs, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(ProgressCallback)

def by_hand(model, n_epoch=1, opt=None, each=lambda ps: None, n=32):
    "The plain loop"
    opt = opt or sgd(model.parameters(), lr=.1)
    for _ in range(n_epoch):
        for x,y in DataLoader(data(n), 8):
            loss(model(x), y).backward()
            each([*model.parameters()])
            opt.step()
            opt.zero_grad()
    return model,opt

def full(model): return {k:whole(v).detach().clone() for k,v in model.state_dict().items()}
def close(model, plain, atol=2e-6):
    a,b = full(model),full(plain)
    assert a.keys()==b.keys()
    for k in a: torch.testing.assert_close(a[k], b[k], rtol=0, atol=atol, msg=lambda m: f'{k}: {m}')
def same(a, b): return all(torch.equal(v, b[k]) for k,v in a.items()) and a.keys()==b.keys()

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    warnings.simplefilter('ignore')
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=20))
    try: f(rank, world, *args)
    finally: dist.destroy_process_group()

def start(path, world, f, *args, join=True):
    store = path/f'store-{time.monotonic_ns()}'
    return torch.multiprocessing.start_processes(_inside, (world, store, f, args), nprocs=world, start_method='fork', join=join)

@pytest.fixture
def processes(tmp_path): return partial(start, tmp_path)

# training, and everything after it

def _trains(rank, world, path):
    learn = learner(Net(rank), FullyShard(Block), world, path=path)   # process 0's weights count
    own = sum(p.to_local().numel() for p in learn.model.parameters())
    total = sum(p.numel() for p in learn.model.parameters())
    assert own <= total/world*1.25, (own, total)
    learn.fit(2)
    plain,opt = by_hand(Net(), 2)
    close(learn.model, plain)
    states = [t for s in learn.opt.state.values() for t in s.values() if is_sharded(t)]
    assert len(states)==len([*plain.parameters()]) and sum(t.to_local().numel() for t in states)==own
    x,y = data(11).tensors
    torch.testing.assert_close(learn.get_preds()[0], plain(x), rtol=0, atol=1e-5)
    want = [loss(plain(x), y).item(), (plain(x).argmax(1)==y).float().mean().item()]
    assert [*learn.validate()]==pytest.approx(want, abs=1e-5) and [learn.recorder.history[-1][k] for k in ('valid_loss','accuracy')]==pytest.approx(want, abs=1e-5)
    # one file with the whole model
    learn.save('whole')
    other = learner(Net(5), path=path).load('whole')
    assert same(full(learn.model), full(other.model)) and all(torch.equal(whole(a['momentum_buffer']), b['momentum_buffer'])
        for a,b in zip(learn.opt.state.values(), other.opt.state.values(), strict=True))
    exported = load_learner(learn.export('out'), Net(4), loss_func=loss)
    assert same(full(exported.model), full(learn.model))
    # and back
    back = learner(Net(6), FullyShard(Block), world, path=path).load('whole')
    assert all(is_sharded(s['momentum_buffer']) for s in back.opt.state.values())
    other.distributed = False
    for l in (back, learn, other): l.fit(1)
    assert same(full(back.model), full(learn.model))
    close(learn.model, other.model)
    close(learn.model, by_hand(plain, 1, opt)[0], 5e-6)

@pytest.mark.parametrize('world', [pytest.param(2, marks=()), pytest.param(4, marks=pytest.mark.slow)])
def test_as_one_process(processes, tmp_path, world): processes(world, _trains, tmp_path)

# with other callbacks, and in other ways

def _options(rank, world):
    "Each option compared with a plain loop that computes the same"
    def fit(*cbs, model=None, select=Block, n=1, **kw):
        learn = learner(model or Net(rank), [FullyShard(select, **kw), *cbs], world)
        learn.fit(n)
        return learn
    # clipping: the norm is that of all processes together
    norms,clip = [],GradientClip(.3)
    class Norms(Callback):
        order = 11.5
        def before_step(self): norms.append(float(clip.norm))
    want = []
    def limit(ps): want.append(nn.utils.clip_grad_norm_(ps, .3).item())
    close(fit(clip, Norms()).model, by_hand(Net(), each=limit)[0])
    assert norms==pytest.approx(want, rel=1e-5) and len(norms)==4
    value = by_hand(Net(), each=lambda ps: nn.utils.clip_grad_value_(ps, .01))[0]
    close(fit(GradientClip(value=.01)).model, value)
    # averaged weights
    ema = torch.optim.swa_utils.AveragedModel(Net(), multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(.5))
    plain = Net()
    opt = sgd(plain.parameters(), lr=.1)
    opt.register_step_post_hook(lambda *args: ema.update_parameters(plain))
    by_hand(plain, 2, opt)
    learn = fit(EMACallback(.5, warmup=False), n=2)
    close(learn.model, ema.module)
    x,y = data(11).tensors
    assert learn.recorder.history[-1]['valid_loss']==pytest.approx(loss(ema.module(x), y).item(), abs=1e-5)
    kept = fit(EMACallback(.5, warmup=False, at_end=False), n=2)   # the weights that are fetched next are never the averaged ones
    close(kept.model, plain)
    assert kept.validate()[0]==pytest.approx(learn.validate()[0], abs=1e-6)
    # gradient accumulation and micro-batches
    small = Net()
    opt = sgd(small.parameters(), lr=.1)
    for xb,yb in DataLoader(data(32), 16): loss(small(xb), yb).backward(); opt.step(); opt.zero_grad()
    close(fit(GradientAccumulation(16//world)).model, small)
    close(fit(MicroBatch(2)).model, by_hand(Net())[0])
    # the monitor's row
    learn = fit(monitor := OptimizerMonitor('1ba'))
    grads = []
    by_hand(Net(), each=lambda ps: grads.append(torch.stack([p.grad.norm() for p in ps]).norm().item()))
    assert monitor.history['grad_norm']==pytest.approx(grads, rel=1e-5)

@pytest.mark.slow
def test_with_other_callbacks(processes): processes(2, _options)

def _ways(rank, world):
    plain = by_hand(Net())[0]
    def fit(model=None, select=Block, cbs=(), n=1, data_n=32, **kw):
        learn = learner(model or Net(rank), [FullyShard(select, **kw), *cbs], world)
        learn.fit(n)
        return learn
    for select in (10**9, 50, (nn.Linear, nn.MultiheadAttention), lambda m: isinstance(m, Block)): close(fit(select=select).model, plain)   # also as one unit
    close(fit(reshard_after_forward=False).model, plain)
    # activations that are computed again, with dropout: bit for bit
    torch.manual_seed(rank)
    a = fit(Net(drop=.3))
    torch.manual_seed(rank)
    b = fit(Net(drop=.3), cbs=[RecomputeActivations(Block)])
    assert same(full(a.model), full(b.model)) and not any('forward' in vars(m) for m in b.model.modules())
    # tied weights stay one
    tied = fit(Net(rank, tied=True), select=(Block, nn.Embedding))
    assert tied.model.head.weight is tied.model.embed.weight and len([*tied.model.parameters()])==len([*Net(tied=True).parameters()])
    close(tied.model, by_hand(Net(tied=True))[0])
    # batch norms: averages of process 0, everywhere
    normed = fit(Net(rank, norm=True))
    assert all(torch.equal(o, normed.model.norm.running_mean) for o in call_in_all(lambda: normed.model.norm.running_mean))
    # 16 bits
    half = fit(mp=torch.bfloat16)
    assert all(p.dtype is torch.float32 for p in half.model.parameters()) and half.get_preds()[0].dtype is torch.float32
    close(half.model, plain, .02)
    assert not same(full(half.model), full(plain)) and half.recorder.losses!=fit().recorder.losses
    own = fit(mp=MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32))
    close(own.model, plain, .02)
    # a model that the user sharded
    mine = Net()
    for m in (*mine.blocks, mine): fully_shard(m, reshard_after_forward=True)
    close(fit(mine).model, plain)
    # an optimizer and a state that were there before
    learn = learner(Net(), (), world)
    learn.fit(1)   # with `DistributedDataParallel`
    opt = learn.opt
    learn.fit(1, cbs=FullyShard(Block))
    assert learn.opt is opt
    close(learn.model, by_hand(Net(), 2)[0])
    model = Net()
    built = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    learn = learner(model, FullyShard(Block), world, opt_func=built)
    learn.fit(1)
    assert learn.opt.opt is built
    close(learn.model, plain)
    # a loss with weights of its own, which are no part of the model
    class Scaled(nn.Module):
        def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(()))
        def forward(self, pred, y): return loss(pred*self.scale, y)
    scaled,want = Scaled(),Scaled()
    learn = learner(Net(rank), FullyShard(Block), world, splitter=lambda m: [*m.parameters(), scaled.scale])
    learn.loss_func = scaled
    learn.fit(1)
    model = Net()
    opt = sgd([*model.parameters(), want.scale], lr=.1)
    for x,y in DataLoader(data(32), 8): want(model(x), y).backward(); opt.step(); opt.zero_grad()
    close(learn.model, model)
    assert scaled.scale.item()==pytest.approx(want.scale.item(), abs=1e-6)!=1
    # the range test puts the weights back
    learn = learner(Net(rank), FullyShard(Block), world)
    learn.lr_find(num_it=8, show_plot=False)
    close(learn.model, Net(), 0)
    # after an error in a batch, and cancelled batches
    learn = learner(Net(), FullyShard(Block), world)
    def fail(cb): raise ArithmeticError
    for ev in ('after_pred','after_loss','before_backward','before_step'):
        with pytest.raises(ArithmeticError): learn.fit(1, cbs=Callback(**{ev:fail}))
    close(learn.model, Net())
    learn.opt.clear_state()
    learn.fit(1)
    close(learn.model, plain)

@pytest.mark.slow
def test_in_other_ways(processes): processes(2, _ways)

def _hybrid(rank, world):
    mesh = init_device_mesh('cpu', (2,2), mesh_dim_names=('replicate','shard'))
    learn = learner(Net(rank), FullyShard(Block, mesh=mesh), world)
    learn.fit(2)
    close(learn.model, by_hand(Net(), 2)[0])
    assert sum(p.to_local().numel() for p in learn.model.parameters())*2==sum(p.numel() for p in learn.model.parameters())
    # what is no data parallelism over all processes
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    grid = init_device_mesh('cpu', (2,2), mesh_dim_names=('dp','tp'))
    with pytest.raises(ValueError, match='the mesh has 2 of 4 processes'): learner(Net(), FullyShard(Block, mesh=grid['dp']), world)
    tensor = Net()
    parallelize_module(tensor, grid['tp'], {'blocks.0.mlp.0':ColwiseParallel()})
    with pytest.raises(ValueError, match='Call .fully_shard.model, mesh=mesh'): learner(tensor, FullyShard(Block), world)

    # and together with `fully_shard`: two processes would need the same data
    for m in (*tensor.blocks, tensor): fully_shard(m, mesh=grid['dp'])
    with pytest.raises(ValueError, match='as with tensor parallelism and `fully_shard`'): learner(tensor, FullyShard(Block), world)

@pytest.mark.slow
def test_a_mesh_of_two_dimensions(processes): processes(4, _hybrid)

def _mechanics(rank, world):
    "What a large model needs, in one pair of processes"
    def fit(model, *cbs, **kw):
        learn = learner(model, [FullyShard(Block, **kw), *cbs], world)
        learn.fit(1)
        return learn
    # only process 0 has values: the others make the model on `meta`
    def partly(**kw):
        with torch.device('meta' if rank else 'cpu'): return Net(0, **kw)
    some,all_ = partly(norm=True),Net(0, norm=True)
    for m in (some, all_):
        if not m.norm.running_mean.is_meta: m.norm.running_mean.fill_(.25)
    assert same(full(fit(some).model), full(fit(all_).model))
    tied = fit(partly(tied=True)).model
    assert tied.head.weight is tied.embed.weight
    close(tied, by_hand(Net(tied=True))[0])
    # 16 bits: bit for bit as hand-written `fully_shard` with the same policies
    model,policy = Net(),MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    for b in model.blocks: fully_shard(b, mp_policy=policy)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32))
    opt = sgd(model.parameters(), lr=.1)
    for x,y in DataLoader(data(32), 8): loss(model(x[rank::world]), y[rank::world]).backward(); opt.step(); opt.zero_grad()
    assert same(full(fit(Net(), mp=torch.bfloat16).model), full(model))
    # as deep as one of a billion, and a vocabulary: bytes by the formula, 4 for a number, its gradient, each average
    x = torch.randint(0, 1280, (8,6))
    deep,held = nn.Sequential(nn.Embedding(1280, 16), *[Block(16) for _ in range(16)], nn.Linear(16, 1280)),{}
    n = sum(p.numel() for p in deep.parameters())
    def count(ts): return sum(t.to_local().nbytes for t in ts if is_sharded(t))
    def note(cb): held.update(own=count(deep.parameters()), grads=count(p.grad for p in deep.parameters()))
    learn = Learner(DataLoaders(DataLoader(TensorDataset(x, x), 4)), deep, CrossEntropyLossFlat(), torch.optim.AdamW, cbs=[FullyShard(Block), RecomputeActivations(Block)])
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=Callback(after_step=note))
    held['averages'] = count(t for s in learn.opt.state.values() for t in s.values())
    assert held==dict(own=4*n/world, grads=4*n/world, averages=8*n/world)
    # validation data of which each process has its own part, of another length: forwards are collectives
    sizes = [5, 2]
    parts = [data(20)[10*r:10*r+m] for r,m in enumerate(sizes)]
    learn = learner(Net(0), FullyShard(Block, shard=False, timeout=20), world)
    learn.dls.loaders[1] = DataLoader(TensorDataset(*parts[rank]), 2)
    plain = Net(0).eval()
    want = loss(plain(torch.cat([x for x,_ in parts])), torch.cat([y for _,y in parts])).item()
    assert learn.validate()[0]==pytest.approx(want, abs=1e-5)
    torch.testing.assert_close(learn.get_preds()[0], plain(parts[rank][0]), rtol=0, atol=1e-5)
    # `fully_shard` without the callback: the message says what to write
    with pytest.raises(ValueError, match='add `cbs=FullyShard..`'): learner(model, (), world).fit(1)
    # tensor parallelism over all processes: they have the same data, and train as one
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    tensor = Net(0)
    for b in tensor.blocks: parallelize_module(b.mlp, init_device_mesh('cpu', (world,)), {'0':ColwiseParallel(), '3':RowwiseParallel()})
    learn = learner(tensor)   # `fit` adds `TensorParallel`
    learn.fit(1)
    close(tensor, by_hand(Net())[0])
    assert learn.validate()[0]==pytest.approx(loss(by_hand(Net())[0].eval()(data(11).tensors[0]), data(11).tensors[1]).item(), abs=1e-5)

@pytest.mark.slow
def test_what_a_large_model_needs(processes): processes(2, _mechanics)

# models that raise

def set_up(model): set_memory_format(model); return model

def _refused(rank, world):
    with torch.device('meta'): empty = Net()
    with pytest.raises(ValueError, match='on `meta`'): learner(empty, FullyShard(Block)).fit(1)
    with pytest.raises(ValueError, match='wrapped in DistributedDataParallel'): learner(DDP(Net()), FullyShard(Block)).fit(1)
    with pytest.raises(ValueError, match='consists of'): learner(Net(), FullyShard(nn.LSTM)).fit(1)
    with pytest.raises(ValueError, match='0.weight, whose memory format.*ChannelsLast'): learner(set_up(nn.Sequential(nn.Conv2d(3, 4, 3))), FullyShard(1)).fit(1)
    # a callback that has trained another model resets no state of one that was not called yet
    cb = FullyShard(Block)
    first = learner(Net(), cb)
    first.fit(1)
    first.remove_cb(cb)
    with pytest.raises(ZeroDivisionError) as failed: learner(Net(), [cb, Callback(before_pred=lambda cb: 1/0)]).fit(1)
    assert not any('FullyShard' in note for note in failed.value.__notes__)

def test_raises(processes): processes(1, _refused)   # in a process of its own: one that has had a group should not fork

@pytest.mark.parametrize('make, words', [
    (lambda: FullyShard(by=Block), 'FullyShard` takes no argument `by`'), (lambda: FullyShard(Block, offload=1), 'did you mean `offload_policy`'), (lambda: FullyShard(1000.), 'a class of modules.*not 1000.0'),
    (lambda: FullyShard(True), '1 or more'), (lambda: FullyShard(0), '1 or more'), (lambda: FullyShard(Net()), 'write `FullyShard.Block.'), (lambda: RecomputeActivations(8), 'write `RecomputeActivations.Block.'),
    (lambda: RecomputeActivations([Block]), 'a tuple of classes'), (lambda: RecomputeActivations(Net().blocks), 'a tuple of classes'), (lambda: RecomputeActivations(()), 'a tuple of classes')])
def test_arguments(make, words):
    "They are checked at once, in one process too"
    with pytest.raises((TypeError, ValueError), match=words): make()

def test_without_a_group():
    "The same script in one process"
    learn = learner(Net(), FullyShard(Block, mp=torch.bfloat16))
    with pytest.warns(UserWarning, match='has no effect in one process'): learn.fit(1)
    assert same(full(learn.model), full(by_hand(Net())[0]))

def _saves_alone(rank, world, path):
    learn = learner(Net(), FullyShard(Block), world, path=path)
    if rank==0:
        with pytest.raises(RuntimeError, match='`learn.save` of a sharded model needs all 2 processes'): learn.save('mine')
    time.sleep(2*(rank>0))

@pytest.mark.slow
def test_one_process_saves(processes, tmp_path): processes(2, _saves_alone, tmp_path)

# checkpoints

adam = partial(torch.optim.Adam, eps=1e-3)   # with a larger eps, rounding is not magnified

class PowerCut(Callback):
    acts = 'nothing'
    def __init__(self, n): self.n = n
    def after_batch(self):
        if self.training and self.train_iter==self.n: raise KeyboardInterrupt

def run(path, world, seed=0, cbs=(), n=2, shard=True, **kw):
    "A run that can be resumed, in any number of processes"
    model = Net(seed)
    torch.manual_seed(7)
    ckpt = CheckpointCallback('1ba', keep=None, folder=path, **{'on_error':'raise', **kw})
    learn = learner(model, [*([FullyShard(Block)] if shard else []), ckpt, *cbs], world, opt_func=adam, lr=.01)
    return learn,partial(learn.fit, n, resume='auto')

def _resumes(rank, world, path, stop, out):
    "Ends after batch `stop`, or writes to `out` what it ends with"
    learn,fit = run(path, world, rank, [EMACallback(.5, at_end=False), *([PowerCut(stop)] if stop else [])])
    if stop:
        with pytest.raises(KeyboardInterrupt): fit()
    else: fit()
    res = _result(learn)
    if rank==0 and not stop: torch.save(res, out)

def _result(learn):
    opt = {f'{i}.{k}':whole(v).clone() for i,s in enumerate(learn.opt.state.values()) for k,v in s.items()}
    ema = {f'ema.{k}':whole(v).clone() for k,v in learn.ema.averages.items()}
    return dict(tensors={**full(learn.model), **opt, **ema}, rows=[[r[k] for k in ('epoch','valid_loss','accuracy')] for r in learn.recorder.history])

def _in_one(path, out, stop=0):
    "The same without FSDP, in this process"
    learn,fit = run(path, 1, 0, [EMACallback(.5, at_end=False), *([PowerCut(stop)] if stop else [])], shard=False)
    if stop:
        with pytest.raises(KeyboardInterrupt): fit()
    else: fit(); torch.save(_result(learn), out)

@pytest.mark.parametrize('worlds', [pytest.param(o, marks=pytest.mark.slow) for o in ((1,4,2,1),)])
def test_resumed_by_another_number(processes, tmp_path, worlds):
    "8 batches, of which each number of processes does two"
    _in_one(tmp_path/'whole', tmp_path/'want')
    for i,world in enumerate(worlds):
        stop = 0 if i==len(worlds)-1 else 2*i+2
        if world==1: _in_one(tmp_path/'ckpt', tmp_path/'got', stop)
        else: processes(world, _resumes, tmp_path/'ckpt', stop, tmp_path/'got')
    want,got = torch.load(tmp_path/'want'),torch.load(tmp_path/'got')
    assert want['tensors'].keys()==got['tensors'].keys()
    for k,t in want['tensors'].items(): torch.testing.assert_close(got['tensors'][k], t, rtol=0, atol=5e-6, msg=lambda m: f'{k}: {m}')
    for a,b in zip(got['rows'], want['rows'], strict=True): assert a==pytest.approx(b, abs=1e-5)

def _until_killed(rank, world, path, victim=None, k=0):
    "Process `victim` is killed at its call `k` of those that write"
    from torch.distributed import checkpoint as dcp
    calls = 0
    def counted(f):
        def g(*args, **kwargs):
            nonlocal calls
            calls += 1
            if rank==victim and calls==k: os.kill(os.getpid(), signal.SIGKILL)
            return f(*args, **kwargs)
        return g
    for o,name in ((os,'fsync'), (os,'replace'), (os,'rename'), (dcp.FileSystemWriter,'write_data')): setattr(o, name, counted(getattr(o, name)))
    run(path, world, rank, n=4)[1]()

@pytest.mark.slow
def test_killed_while_it_saves(tmp_path):
    "At random moments: what is taken is always a whole checkpoint, and the run comes to its end as if nothing had been"
    states,plain,rng,newest,halves,n = {},Net(),random.Random(3),0,0,20 if 'LEARNKIT_SWEEP' in os.environ else 4
    opt = adam(plain.parameters(), lr=.01)
    opt.register_step_post_hook(lambda *args: states.__setitem__(len(states)+1, {k:v.clone() for k,v in plain.state_dict().items()}))
    by_hand(plain, 4, opt)
    folder = tmp_path/'ckpt'/'fit-1'
    def check():
        _,state = newest_checkpoint(folder)
        if state is None: return 0
        n = state['train_iter']
        assert n>=newest and all(torch.allclose(v, states[n][k], atol=5e-6) for k,v in state['model'].items())
        return n
    for _ in range(n):
        victim = rng.randrange(2)
        ps = start(tmp_path, 2, _until_killed, tmp_path/'ckpt', victim, rng.randint(1, (14,3)[victim]), join=False)
        ps.processes[victim].join(60)
        for p in ps.processes: p.kill(); p.join()
        halves += any(not p.with_suffix('.json').exists() for p in folder.glob('step-*.[ps]*'))
        newest = check()
    start(tmp_path, 2, _until_killed, tmp_path/'ckpt')
    newest = check()
    assert newest==16 and halves>n//3, (newest, halves)   # most were in the middle of a save

def _in_background(rank, world, path):
    "The writing of each checkpoint begins late, when training is steps ahead; it has the state of its moment all the same"
    from torch.distributed import checkpoint as dcp
    save,begun,states = dcp.save,[],{}
    def late(*args, **kwargs):
        begun.append(1)
        while learn.train_iter==4*len(begun)<12: time.sleep(.001)
        return save(*args, **kwargs)
    def note(cb):
        if cb.learn.training: states[cb.learn.train_iter] = full(learn.model),{f'{i}.{k}':whole(v).clone() for i,s in enumerate(learn.opt.state.values()) for k,v in s.items()}
    watch = Callback(after_batch=note)
    watch.acts = 'nothing'
    learn,fit = run(path, world, rank, [watch], n=3, background=True)
    learn.checkpoint.every = type(learn.checkpoint.every)('4ba')
    dcp.save = late
    try: fit()
    finally: dcp.save = save
    paths = call_in_first(lambda: list_checkpoints(learn.checkpoint.folder))
    assert len(paths)==3 and len(begun)==4
    for p in paths:
        state = read_checkpoint(p)
        model,opt = states[state['train_iter']]
        assert same({k:whole(v) for k,v in state['model'].items()}, model)
        assert same({f'{i}.{k}':whole(v) for i,s in state['opt']['state'].items() for k,v in s.items()}, opt)

@pytest.mark.slow
def test_written_while_training_continues(processes, tmp_path): processes(2, _in_background, tmp_path)

def _faults(rank, world, path):
    "A full disk in one process, at the parts or at the rest; damage that one process finds; weights that one process knows to be broken"
    from torch.distributed import checkpoint as dcp
    from learnkit.recovery import checkpoint as writer, file as checkpoint_file
    def fit(folder, **kw):
        learn,fit = run(path/folder, world, rank, n=1, on_error='warn', **kw)
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter('always')
            fit()
        return learn,[str(o.message) for o in w]
    save,write = dcp.FileSystemWriter.write_data,checkpoint_file._write_files
    calls = []
    def full_disk(self, *args):
        calls.append(1)
        if rank==1 and len(calls)==2: raise OSError('No space left on device')
        return save(self, *args)
    dcp.FileSystemWriter.write_data = full_disk
    try: learn,said = fit('parts')
    finally: dcp.FileSystemWriter.write_data = save
    folder = learn.checkpoint.folder
    assert any('a checkpoint could not be written' in o and 'No space left' in o for o in said), said
    assert [p.name for p in call_in_first(lambda: list_checkpoints(folder))][-2:]==['step-00000003.pth','step-00000001.pth'] and not (folder/'step-00000002.shards').exists()
    def no_room(state, path, info):
        if path.name=='step-00000002.pth': raise OSError('No space left on device')
        return write(state, path, info)
    checkpoint_file._write_files = no_room
    try: learn,said = fit('rest')
    finally: checkpoint_file._write_files = write
    assert any('could not be written' in o for o in said) and 'step-00000002.pth' not in call_in_first(lambda: [p.name for p in list_checkpoints(learn.checkpoint.folder)])
    # another process ends when a checkpoint is complete, or while the first one is read back: it stays complete
    def loses(f, name):
        def g(*args):
            res = f(*args)
            if args[-2 if f is write else 0].name==name: raise RuntimeError('Connection closed by peer')
            return res
        return g
    checkpoint_file._write_files,writer.read_checkpoint = loses(write, 'step-00000002.pth'),loses(read_checkpoint, 'step-00000001.pth')
    try: learn,said = fit('lost')
    finally: checkpoint_file._write_files,writer.read_checkpoint = write,read_checkpoint
    assert sum('could not be written' in o for o in said)>=1+(rank==0), said
    for i in (1, 2): read_checkpoint(learn.checkpoint.folder/f'step-{i:08}.pth')
    # a flipped bit in each of the files
    newest = call_in_first(lambda: list_checkpoints(folder))[0]
    for file in sorted(newest.with_suffix('.shards').iterdir()):
        dist.barrier()
        bits = file.read_bytes()
        dist.barrier()
        if rank==0: file.write_bytes(bits[:40] + bytes([bits[40]^1]) + bits[41:])
        dist.barrier()
        with pytest.raises(ValueError, match='is damaged'): read_checkpoint(newest)
        if rank==0: file.write_bytes(bits)
    dist.barrier()
    read_checkpoint(newest)
    # one process has a NaN in its part
    learn,_ = run(path/'nan', world, rank)
    def spoil(cb):
        if rank and cb.learn.train_iter==4: next(learn.model.parameters()).data.to_local().fill_(float('nan'))
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        learn.fit(1, cbs=Callback(after_batch=spoil))
    assert sum('no checkpoint is saved' in str(o.message) for o in w)>=1

@pytest.mark.slow
def test_faults_in_one_process(processes, tmp_path): processes(2, _faults, tmp_path)

# a Cancel of one process before the forward pass, in which the others would wait for it

def _left_out(rank, world, ev):
    def run(who):
        def cut(cb):
            if cb.learn.training and rank in who and cb.learn.train_iter==1: raise CancelBatch
        learn = learner(Net(0), [FullyShard(Block, timeout=10), Callback(**{ev:cut})], world)
        learn.fit(1)
        assert learn.train_iter==4
        return full(learn.model)
    one,all_ = run([1]),run(range(world))
    for n in one: assert torch.equal(one[n], all_[n]), n

@pytest.mark.parametrize('ev', ['before_batch', pytest.param('before_pred', marks=pytest.mark.slow)])
def test_a_batch_that_one_process_leaves_out(processes, ev): processes(2, _left_out, ev)

# parameters of a loss function are whole in each process, those of the model are not: both are clipped

class Weighted(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(3))
    def forward(self, pred, y): return loss(pred, y)*self.w.exp().sum()

def _clips(rank, world):
    def run(trainer, clip):
        model,own = Net(0),Weighted()
        torch.manual_seed(7)
        learn = learner(model, [trainer, clip], world, splitter=lambda m: [[*m.parameters()], [*own.parameters()]])
        learn.loss_func = own
        learn.fit(1)
        return [*full(learn.model).values(), own.w.detach()]
    for kw in (dict(max_norm=.1), dict(max_norm=.05, norm_type=float('inf')), dict(max_norm=.1, norm_type=1.), dict(value=.01)):
        for a,b in zip(run(DistributedTrainer(), GradientClip(**kw)), run(FullyShard(Block), GradientClip(**kw)), strict=True): torch.testing.assert_close(a, b, rtol=0, atol=2e-6)

@pytest.mark.slow
def test_clipped_with_parameters_of_the_loss(processes): processes(2, _clips)
