"""The gradient of several processes is that of one batch of all targets, even if their numbers of targets differ."""
import contextlib, copy, os, random, warnings
from datetime import timedelta
from functools import partial

import pytest, torch
import torch._dynamo   # for PyTorch's optimizers: once here, not for seconds in each forked process
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Callback, CancelBatch, CancelStep, CancelZeroGrad, CheckpointCallback, CrossEntropyLossFlat,
                          DistributedTrainer, FullyShard, GradientAccumulation, GradientClip, InTurn, Learner, MicroBatch,
                          MSELossFlat, SAM, rank_distrib, set_seed)
from learnkit.data.process import alone
from learnkit.processes import agreement

torch.set_num_threads(1)

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_starts, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run
def _starts(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=60))
    try: f(rank, world, *args)
    finally: dist.destroy_process_group()

# sentences of 5 words, of which every second has one that counts, and some none

def sentences(n=24, none=()):
    g = torch.Generator().manual_seed(0)
    x,y = torch.randn(n, 5, 3, generator=g),torch.randint(0, 4, (n, 5), generator=g)
    y[1::2,1:] = -100
    for i in none: y[i] = -100
    return x,y

def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))

def weights(m): return torch.cat([getattr(p, 'full_tensor', lambda p=p: p)().detach().flatten() for p in m.parameters()])

def by_hand(x, y, per_step, loss=F.cross_entropy):
    "Weights after a plain loop with steps of `per_step` sentences"
    m = model()
    opt = torch.optim.SGD(m.parameters(), lr=.5)
    for bx,by in zip(x.split(per_step), y.split(per_step)):
        opt.zero_grad()
        loss(m(bx).flatten(0, 1), by.flatten()).backward()
        opt.step()
    return weights(m)

def fitted(x, y, bs, *cbs, loss=None, m=None, **kw):
    if loss is None: loss = CrossEntropyLossFlat(ignore_index=-100)
    m = m or model()
    learn = Learner([DataLoader(TensorDataset(x, y), bs)], m, loss, opt_func=partial(torch.optim.SGD, lr=.5), cbs=[*cbs], **kw)
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    return weights(learn.model)

def close(a, b): torch.testing.assert_close(a, b, atol=2e-6, rtol=2e-5)

# how a step is taken: callbacks, and sentences of a process in a batch and in a step

ways = dict(plain=(lambda: [], 2, 2), micro=(lambda: [MicroBatch(1)], 2, 2), batches=(lambda: [GradientAccumulation('2ba')], 2, 4),
            samples=(lambda: [GradientAccumulation(4)], 2, 4), both=(lambda: [GradientAccumulation('2ba'), MicroBatch(1)], 2, 4),
            left_over=(lambda: [GradientAccumulation('3ba')], 1, 3), clipped=(lambda: [GradientClip(1e6)], 2, 2),
            sharded=(lambda: [FullyShard(select=1)], 2, 2), sharded_batches=(lambda: [FullyShard(select=1), GradientAccumulation('2ba')], 2, 4),
            sharded_parts=(lambda: [FullyShard(select=1), GradientAccumulation('2ba'), MicroBatch(1)], 2, 4))

def _tokens(rank, world, names):
    for name in names:
        x,y = sentences(11*world if name=='left_over' else 24)
        make,bs,per_step = ways[name]
        try: close(fitted(x, y, bs, *make()), by_hand(x, y, per_step*world))
        except Exception as e:
            e.add_note(f'{name} in {world} processes')
            raise

@pytest.mark.parametrize('world', [2, 3])
def test_mean_over_all_tokens(processes, world): processes(world, _tokens, [*ways])

def _losses(rank, world):
    x,y = sentences(24)
    w = torch.tensor([1., 5., .2, 2.])
    weighted = nn.CrossEntropyLoss(w, ignore_index=-100)
    for cbs,bs in (((), 2), ((GradientAccumulation('2ba'),), 1)):
        cbs = copy.deepcopy([*cbs])
        close(fitted(x, y, bs, *cbs, loss=CrossEntropyLossFlat(weight=w, ignore_index=-100)), by_hand(x, y, 2*world, weighted))
        cbs = copy.deepcopy(cbs)
        masked.batch_weight = lambda y: (y!=-100).sum()
        close(fitted(x, y, bs, *cbs, loss=masked), by_hand(x, y, 2*world))
        del masked.batch_weight
    # a sum is divided by the number of processes, as `DistributedDataParallel` does
    summed = nn.CrossEntropyLoss(reduction='sum', ignore_index=-100)
    close(fitted(x, y, 2, loss=CrossEntropyLossFlat(reduction='sum', ignore_index=-100)),
          by_hand(x, y, 2*world, lambda p,y: summed(p, y)/world))

def masked(pred, y):
    "A mean over unmasked words, a reduction that the function does not declare"
    counts = y!=-100
    each = F.cross_entropy(pred.flatten(0, 1), y.flatten().clamp_min(0), reduction='none').view(y.shape)
    return (each*counts).sum()/counts.sum()

def test_class_weights_and_losses_with_a_weight_of_their_own(processes): processes(2, _losses)

def _none_counts(rank, world):
    "In the second step no target of process 1 counts, in the last step none at all"
    x,y = sentences(12, none=(5, 7))
    for cbs in ((), (MicroBatch(1),)): close(fitted(x, y, 2, *copy.deepcopy(cbs)), by_hand(x, y, 4))
    x,y = sentences(8, none=(0, 1, 2, 3))
    close(fitted(x, y, 2, GradientAccumulation('2ba')), by_hand(x, y, 8))

def test_a_process_without_a_target_that_counts(processes): processes(2, _none_counts)

class Rows(torch.utils.data.IterableDataset):
    "Batches of this process only, with other lengths in each process"
    def __init__(self, batches): self.batches = batches
    def __iter__(self): return iter(self.batches)

def _lengths(rank, world):
    "Each process has batches of its own, of 2 and 6 rows: numbers as targets"
    g = torch.Generator().manual_seed(0)
    x = torch.randn(3, 8, 3, generator=g)
    y = x.sum(-1, keepdim=True).expand(-1, -1, 4).contiguous()
    own = [(bx[:2],by[:2]) if rank==0 else (bx[2:],by[2:]) for bx,by in zip(x, y)]
    m = model()
    learn = Learner([DataLoader(Rows(own), None)], m, nn.MSELoss(), opt_func=partial(torch.optim.SGD, lr=.5))
    with learn.no_logging(), learn.no_bar(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(1, cbs=DistributedTrainer(shard=False))
    hand = model()
    opt = torch.optim.SGD(hand.parameters(), lr=.5)
    for bx,by in zip(x, y):
        opt.zero_grad()
        F.mse_loss(hand(bx), by).backward()
        opt.step()
    close(weights(m), weights(hand))

def test_batches_of_other_lengths(processes): processes(2, _lengths)

class Proxies(nn.Module):
    "A loss with its own weights, whose gradients are all-reduced apart from those of the model"
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, 16).view(4, 4))
        self.ignore_index = -100
    def forward(self, pred, y): return F.cross_entropy((pred@self.w).flatten(0, 1), y.flatten(), ignore_index=-100)

def _weights_of_loss(rank, world):
    x,y = sentences(24)
    for cbs,bs in (((), 2), ((GradientAccumulation('2ba'),), 1)):
        loss,hand_loss,hand = Proxies(),Proxies(),model()
        got = fitted(x, y, bs, *copy.deepcopy(cbs), loss=loss)
        opt = torch.optim.SGD([*hand.parameters(), *hand_loss.parameters()], lr=.5)
        for bx,by in zip(x.split(2*world), y.split(2*world)):
            opt.zero_grad()
            hand_loss(hand(bx), by).backward()
            opt.step()
        close(got, weights(hand))
        close(loss.w, hand_loss.w)

def test_weights_of_the_loss(processes): processes(2, _weights_of_loss)

# a warning where it cannot be known

def _said(rank, world):
    x,y = sentences(8)
    for cbs in ((), (GradientAccumulation('2ba'),)):
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter('always')
            fitted(x, y, 2, *copy.deepcopy(cbs), loss=masked)
        said = [str(o.message) for o in w if 'masked' in str(o.message)]
        assert (len(said)==1)==(rank==0), said
        if rank==0: assert 'masked.batch_weight' in said[0] and 'process' in said[0], said
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for loss in (MSELossFlat(), F.mse_loss, lambda p,y: ((p-y)**2).mean(), lambda p,y: F.l1_loss(p, y)+.1*p.pow(2).mean()):
            fitted(x, x.sum(-1, keepdim=True).expand(-1, -1, 4).contiguous(), 2, loss=loss)

def test_a_mean_over_something_else_is_named_at_the_first_step(processes): processes(2, _said)

def _off(rank, world):
    "weigh=False: the mean of the processes' gradients, as `DistributedDataParallel` takes it"
    x,y = sentences(8)
    hand = model()
    opt = torch.optim.SGD(hand.parameters(), lr=.5)
    for i in range(0, 8, 4):
        opt.zero_grad()
        for r in range(2):
            rows = slice(i+r, i+4, 2)
            (F.cross_entropy(hand(x[rows]).flatten(0, 1), y[rows].flatten())/2).backward()
        opt.step()
    close(fitted(x, y, 2, DistributedTrainer(weigh=False)), weights(hand))

def test_switched_off(processes): processes(2, _off)

class OneSkips(Callback):
    "Process 1 cancels a batch, early or late, which then is cancelled in both"
    def __init__(self, event): setattr(self, event, self.skip)
    def skip(self):
        if self.learn.iter==1 and rank_distrib()==1: raise CancelBatch

def _cancels(rank, world, event):
    x,y = sentences(16)
    got = fitted(x, y, 2, OneSkips(event))
    kept = [*range(0, 4), *range(8, 16)]
    close(got, by_hand(x[kept], y[kept], 4))

@pytest.mark.parametrize('event', ['before_batch', 'after_pred', 'after_loss', 'before_backward'])
def test_a_batch_that_one_process_cancels(processes, event): processes(2, _cancels, event)

# most batches have the usual weight, so a process waits for the others only if its own has another one

def _sizes(rng, world, n=12):
    "Rows in each process's batches: mostly 8 in all, some other size in all, or of each process its own"
    def of_batch():
        kind = rng.choice(['usual', 'usual', 'usual', 'other', 'one', 'each'])
        if kind=='other': return [rng.randint(1, 8)]*world
        if kind=='each': return [rng.randint(1, 9) for _ in range(world)]
        sizes = [8]*world
        if kind=='one': sizes[rng.randrange(world)] = rng.randint(1, 7)
        return sizes
    return [of_batch() for _ in range(n)]

def _rows(sizes):
    g = torch.Generator().manual_seed(2)
    return [[(torch.randn(n, 3, generator=g), torch.randint(0, 4, (n,), generator=g)) for n in row] for row in sizes]

def _joined(parts): return [torch.cat(ts) for ts in zip(*parts)]

class CancelsSteps(Callback):
    "Cancels some steps and keeps the gradients, so that the next step takes those of several batches"
    def __init__(self, steps): self.steps = steps
    def before_step(self):
        if self.learn.iter in self.steps: raise CancelStep
    def before_zero_grad(self):
        if self.learn.iter in self.steps: raise CancelZeroGrad

def _stepped(m, batches, cancelled=()):
    opt = torch.optim.SGD(m.parameters(), lr=.1)
    for i,(x,y) in enumerate(batches):
        F.cross_entropy(m(x), y).backward()
        if i in cancelled: continue
        opt.step()
        opt.zero_grad()
    return weights(m)

def _learned(own, *cbs, m=None, **kw):
    learn = Learner([own], m or model(), F.cross_entropy, torch.optim.SGD, lr=.1)
    trainer = [] if any(isinstance(cb, FullyShard) for cb in cbs) else [DistributedTrainer(shard=False, **kw)]
    with learn.no_logging(), learn.no_bar(): learn.fit(1, cbs=[*trainer, *cbs])
    return weights(learn.model)

def _unlike(rank, world, by_board, seeds):
    if not by_board: agreement.open_shared_memory = lambda: None
    for seed in seeds:
        rng = random.Random(seed)
        sizes = _sizes(rng, world)
        cancelled = {i for i in range(12) if rng.random()<.2}
        batches = _rows(sizes)
        own,joined = [parts[rank] for parts in batches],[*map(_joined, batches)]
        try:
            close(_learned(own), _stepped(model(), joined))
            close(_learned(own, CancelsSteps(cancelled)), _stepped(model(), joined, cancelled))
            close(_learned(own, FullyShard(select=1, shard=False)), _stepped(model(), joined))
        except Exception as e:
            e.add_note(f'seed {seed}: {sizes}, without steps {cancelled}')
            raise

@pytest.mark.parametrize('world,by_board', [(2, True), (3, False), (4, True)])
def test_batches_of_any_sizes(processes, world, by_board):
    n = 100 if os.environ.get('LEARNKIT_SWEEP') else 3
    processes(world, _unlike, by_board, range(n))

class ScaledLoss(nn.Module):
    "A loss with a parameter of its own, which stays a plain tensor if the parameters of the model are sharded"
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
    def forward(self, pred, y): return F.cross_entropy(pred*self.scale, y)

def _corrects_plain_and_sharded(rank, world, sizes, n_acc):
    batches = _rows(sizes)
    m,loss,want,want_loss = model(),ScaledLoss(),model(),ScaledLoss()
    learn = Learner([[parts[rank] for parts in batches]], m, loss, torch.optim.SGD, lr=.1)
    cbs = [FullyShard(select=1, shard=False), *([GradientAccumulation(f'{n_acc}ba')] if n_acc>1 else [])]
    with learn.no_logging(), learn.no_bar(): learn.fit(1, cbs=cbs)
    opt = torch.optim.SGD([*want.parameters(), *want_loss.parameters()], lr=.1)
    joined = [*map(_joined, batches)]
    for i in range(0, len(joined), n_acc):
        x,y = _joined(joined[i:i+n_acc])
        opt.zero_grad()
        want_loss(want(x), y).backward()
        opt.step()
    close(weights(m), weights(want))
    close(loss.scale, want_loss.scale)

@pytest.mark.parametrize('n_acc', [1, 2])
def test_gradients_of_plain_and_sharded_parameters_are_corrected(processes, n_acc):
    processes(2, _corrects_plain_and_sharded, [[8, 8], [8, 3], [8, 8]], n_acc)

def _passes(rank, world, sizes):
    "A batch that is evaluated several times: by `SAM`, and in the turns of `InTurn` with one loss function"
    batches = _rows(sizes)
    own,joined = [parts[rank] for parts in batches],[*map(_joined, batches)]
    def run(batches, opt_func, *cbs, **kw):
        learn = Learner([batches], model(), F.cross_entropy, opt_func, lr=.1, **kw)
        with learn.no_logging(), learn.no_bar(): learn.fit(1, cbs=cbs)
        return weights(learn.model)
    turns = {'a':(torch.optim.SGD, '0.*'), 'b':(torch.optim.SGD, '2.*')}
    data_parallel,sharded = partial(DistributedTrainer, shard=False),partial(FullyShard, select=1, shard=False)
    in_turn = partial(InTurn, [('a','b')])
    for trainer,opt_func,cb in ((data_parallel, torch.optim.SGD, SAM), (sharded, torch.optim.SGD, SAM),
                                (data_parallel, turns, in_turn)):
        got = run(own, opt_func, trainer(), cb())
        with alone(): want = run(joined, opt_func, cb())
        close(got, want)

def test_each_pass_over_a_batch_is_weighed(processes): processes(2, _passes, [[8, 8], [8, 3], [8, 8], [2, 8]])

def _alike(rank, world):
    "Batches of one size in all processes, which may differ from the last: bit for bit as without weights"
    own = [parts[rank] for parts in _rows([[n]*world for n in (8, 8, 3, 8, 5, 5, 8, 7)])]
    got = _learned(own)
    assert torch.equal(got, _learned(own, weigh=False))
    if world>2: return   # gloo adds up three numbers in an order that depends on PyTorch's buckets
    assert torch.equal(got, _stepped(nn.parallel.DistributedDataParallel(model()), own))

@pytest.mark.parametrize('world', [2, 3])
def test_equal_batches_train_as_without_weights(processes, world): processes(world, _alike)

class AfterTheOther(Callback):
    "In process 1, begins its backward pass only when process 0 is in its own"
    acts = 'nothing'   # so the processes need not agree before the backward pass
    def before_fit(self): self.store = dist.distributed_c10d._get_default_store()
    def after_loss(self):
        if self.learn.iter==0: return   # the usual weight is not known yet
        key = f'backward {self.learn.iter}'
        if rank_distrib()==0: self.learn.loss_grad.register_hook(lambda grad: self.store.set(key, 'begun'))
        else: self.store.wait([key], timedelta(seconds=20))

def _does_not_wait(rank, world, by_board):
    if not by_board: agreement.open_shared_memory = lambda: None
    own = [parts[rank] for parts in _rows([[8, 8], [8, 8], [8, 3], [8, 8]])]
    assert torch.isfinite(_learned(own, AfterTheOther())).all()

@pytest.mark.parametrize('by_board', [True, False])
def test_a_batch_of_the_usual_weight_does_not_wait(processes, by_board): processes(2, _does_not_wait, by_board)

class Fails(Callback):
    acts = 'nothing'
    def __init__(self, at): self.at = at
    def after_batch(self):
        if self.training and self.learn.train_iter==self.at: raise RuntimeError('failed on purpose')

def _resumed(rank, world, path):
    "Training that ends in any batch resumes bit for bit, even if the batches have different weights"
    def run(name, *cbs, **kw):
        set_seed(3)
        dl = DataLoader(TensorDataset(*sentences(16)), 1, shuffle=True)
        learn = Learner([dl], model(), CrossEntropyLossFlat(ignore_index=-100), torch.optim.SGD, lr=.5,
                        path=path/name, cbs=[CheckpointCallback('1ba'), *cbs])
        with learn.no_logging(), learn.no_bar(): learn.fit(1, **kw)
        return weights(learn.model)
    want = run('whole')
    for at in range(1, 8):
        with contextlib.suppress(RuntimeError): run(f'{at}', Fails(at))
        assert torch.equal(run(f'{at}', resume='auto'), want), at

def test_a_resumed_run_rounds_alike(processes, tmp_path): processes(2, _resumed, tmp_path)

# in one process: several batches of a step

def test_batches_of_a_step_whose_loss_does_not_say_what_it_is_a_mean_over():
    x,y = sentences(8)
    with pytest.warns(UserWarning, match='masked.batch_weight'): fitted(x, y, 1, GradientAccumulation('4ba'), loss=masked)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fitted(x, y, 1, GradientAccumulation('4ba'))
        masked.batch_weight = lambda y: (y!=-100).sum()
        try: got = fitted(x, y, 1, GradientAccumulation('4ba'), loss=masked)
        finally: del masked.batch_weight
    close(got, by_hand(x, y, 4))
