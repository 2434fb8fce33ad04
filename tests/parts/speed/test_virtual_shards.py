"""Virtual shards: 1, 2 and 4 processes equal a plain loop bit for bit, also resumed in another number."""
import random, signal, time, warnings
from datetime import timedelta
from functools import partial
from hashlib import blake2b

import numpy as np, pytest, torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset, WeightedRandomSampler

from learnkit.all import (AccumMetric, Callback, CancelBatch, CancelFit, CancelStep, CancelTrain, CancelZeroGrad, CheckpointCallback, CutMix, DataLoaders, DistributedTrainer, EarlyStoppingCallback, EMACallback, F1Score, FusedStep, GradientAccumulation,
                          GradientClip, ItemIndices, JsonLogger, Learner, LimitBatches, MicroBatch, MixedPrecision, MixUp, OverfitBatches, ParamScheduler, Prefetch, ProgressCallback, Recorder, ReduceLROnPlateau, ReplayOnOOM,
                          RollBackOnNaN, SaveModelCallback, SkipNaN, StepsPerEpoch, StopAfter, ValidateEvery, one_cycle)
from learnkit.speed.virtual import VirtualShards
from toys import few, slow, weights

pytestmark = few(10_000, 1)   # slow cases of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)

# what is trained

def images(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, 8, 8, generator=g)
    return TensorDataset(x, (x.mean((1,2,3))>0).long()+(x[:,0,0,0]>0).long())

class CNN(nn.Sequential):
    def __init__(self): super().__init__(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(.2), nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 3))

def texts(n, seed=0):
    "Texts with padding, which the loss ignores"
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(1, 12, (n, 10), generator=g)
    y = (x+x.roll(1, 1))%12
    lengths = torch.randint(1, 11, (n, 1), generator=g)
    return TensorDataset(x, y.masked_fill(torch.arange(10)>=lengths, -100))

class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb,self.head = nn.Embedding(12, 16),nn.Linear(16, 12)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=.1, batch_first=True), 2, enable_nested_tensor=False)
    def forward(self, x): return self.head(self.body(self.emb(x))).transpose(1, 2)

def right(pred, y): return (pred.argmax(1)==y).float().mean()

KINDS = dict(cnn=(CNN, images), transformer=(Transformer, texts))

def made(kind, seed=1):
    torch.manual_seed(seed)
    return KINDS[kind][0]()

def learner(kind, bs=4, n=45, seed=1, path='.', model=None, ds=None, dl=None, valid=None, **kw):
    ds = KINDS[kind][1](n) if ds is None else ds
    model = model or made(kind, seed)
    if seed is not None: torch.manual_seed(seed)
    learn = Learner(DataLoaders(dl or DataLoader(ds, bs, shuffle=True), valid or DataLoader(KINDS[kind][1](10, 1), 4)), model, kw.pop('loss_func', F.cross_entropy), kw.pop('opt_func', partial(torch.optim.AdamW, weight_decay=.1)), lr=.01, path=path, **{'metrics':right, **kw})
    learn.logger = lambda row: None
    return learn.remove_cb(ProgressCallback)

def result(learn):
    "All results that must be equal, as a dictionary of tensors and numbers"
    opt = {f'opt.{i}.{k}':torch.as_tensor(v) for i,s in learn.opt.state_dict()['state'].items() for k,v in s.items()}
    rows = {f'{k}.{i}':v for i,r in enumerate(learn.recorder.history) for k,v in r.items() if k!='time'}
    return {**{k:v.clone() for k,v in learn.model.state_dict().items()}, **opt, **rows, 'losses':learn.recorder.smooth_loss.raw, 'lrs':[*learn.recorder.lrs], 'random':torch.get_rng_state()}

def same(a, b, where=''):
    assert a.keys()==b.keys()
    for k in a: assert torch.equal(a[k], b[k]) if isinstance(a[k], torch.Tensor) else a[k]==b[k], where+k

# the processes

def _starts(rank, world, path, f, args):
    torch.set_num_threads(1)
    if world>1: dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=60))
    try: torch.save(f(rank, world, *args), f'{path}.{rank}')
    finally:
        if world>1: dist.destroy_process_group()

@pytest.fixture
def processes(tmp_path):
    runs = iter(range(100))
    def run(world, f, *args):
        path = tmp_path/f'store{next(runs)}'
        torch.multiprocessing.start_processes(_starts, (world, path, f, args), nprocs=world, start_method='fork')
        first,*others = [torch.load(f'{path}.{r}', weights_only=False) for r in range(world)]
        for o in others:
            for k in first: same(first[k], o[k])
        return first
    return run

# the same, in plain PyTorch

def hashed(*key): return int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), 'big') >> 1

def tree(parts):
    "Merge weighted means, neighbours first"
    while len(parts)>1:
        pairs = [parts[i:i+2] for i in range(0, len(parts), 2)]
        parts = [p[0] if len(p)==1 else merged(*p) for p in pairs]
    return parts[0]

def merged(a, b):
    (xs,v),(ys,w) = a,b
    if v+w==0: return xs,v+w
    return [x*(v/(v+w))+y*(w/(v+w)) for x,y in zip(xs, ys)],v+w

def plain_loop(kind, n, seed, bs=4, n_items=45, n_epoch=2):
    "Two epochs of AdamW with `n` shards a batch"
    ds,model = KINDS[kind][1](n_items),made(kind)
    opt,losses = torch.optim.AdamW(model.parameters(), lr=.01, weight_decay=.1),[]
    for epoch in range(n_epoch):
        torch.manual_seed(hashed((seed,0), epoch))
        shards = [*BatchSampler(RandomSampler(ds), bs, False)]
        model.train()
        for i in range(0, len(shards), n):
            parts,start = [],{k:v.clone() for k,v in model.named_buffers()}
            for s,idxs in enumerate(shards[i:i+n]):
                x,y = ds[idxs]
                for k,v in model.named_buffers(): v.copy_(start[k])
                torch.manual_seed(hashed(seed, epoch, i//n, s))
                loss = F.cross_entropy(model(x), y)
                grads = torch.autograd.grad(loss, [*model.parameters()])
                parts.append(([*grads, loss.detach(), *(b.clone() for b in model.buffers() if b.is_floating_point())], (y!=-100).sum().float()))
            means,_ = tree(parts)
            for p,g in zip(model.parameters(), means): p.grad = g
            for b,v in zip([b for b in model.buffers() if b.is_floating_point()], means[len(grads)+1:]): b.copy_(v)
            losses.append(means[len(grads)].item())
            opt.step()
    return model,losses

def _fits(rank, world, kind, ns, hand=False):
    res = {}
    for n in ns:
        if n%world: continue
        learn = learner(kind)
        learn.fit(2, cbs=(shards := VirtualShards(n)))
        res[n] = result(learn)
        if hand:
            model,losses = plain_loop(kind, n, shards.seed)
            same(model.state_dict(), learn.model.state_dict())
            assert losses==res[n]['losses']
    return res

@pytest.mark.parametrize('kind,ns,worlds', [('cnn', [4], [4]), *slow(('cnn', [1,4,8], [2,4]), ('transformer', [2,4,8], [2,4]))])
def test_equals_a_plain_loop_in_any_number_of_processes(processes, kind, ns, worlds):
    alone = _fits(0, 1, kind, ns, hand=True)
    for world in worlds:
        several = processes(world, _fits, kind, ns)
        assert [*several]==[n for n in ns if n%world==0]
        for n in several: same(alone[n], several[n])

# with other callbacks, data and losses

class Noisy(Dataset):
    "Images with random noise drawn for each sample"
    def __init__(self, n=45): self.ds = images(n)
    def __len__(self): return len(self.ds)
    def __getitem__(self, i):
        x,y = self.ds[i]
        return x+.1*torch.randn_like(x)+random.random()+.1*float(np.random.rand()),y

class Spoiled(Callback):
    "Makes the loss and the gradients of one shard NaN in some batches"
    order = 1
    def after_loss(self):
        if self.learn.training and self.learn.iter in (1, 2) and (self.learn.yb[0]==self.learn.epoch).sum()>1: self.learn.loss_grad = self.learn.loss_grad*float('nan'); self.learn.loss = self.learn.loss*float('nan')

class Leaves(Callback):
    "Cancels some shards of one batch, and all shards of another"
    run_valid = False
    def __init__(self, event): self.event = event; setattr(self, event, self.cancel)
    def cancel(self):
        if self.learn.iter==1 or (self.learn.iter==2 and self.learn.batch[1][0]==1): raise CancelBatch

class Draws(Callback):
    "Adds noise to gradients before the step, and to inputs in the batch; draws elsewhere too"
    def before_batch(self):
        if self.learn.training: self.learn.xb = (self.learn.xb[0]+.1*torch.randn_like(self.learn.xb[0]),)
    def before_step(self):
        for p in self.learn.model.parameters(): p.grad.add_(.01*torch.randn_like(p))
    def after_batch(self): torch.rand(1); random.random()
    before_validate = after_batch

class SometimesUnused(CNN):
    "A layer that only some shards use"
    def __init__(self): super().__init__(); self.extra,self.never = nn.Linear(3, 3),nn.Linear(3, 3)
    def forward(self, x):
        out = x
        for m in [*self][:9]: out = m(out)
        return out+self.extra(out) if x[0,0,0,0]>.8 else out

class Counts(nn.Module):
    "Has non-persistent, integer and 16-bit buffers"
    def __init__(self):
        super().__init__()
        self.net = CNN()
        self.register_buffer('most', torch.tensor(0), persistent=False)
        self.register_buffer('seen', torch.zeros(3, dtype=torch.bool))
        self.register_buffer('mean', torch.zeros(2, dtype=torch.bfloat16))
    def forward(self, x):
        if self.training: self.most.fill_(max(int(self.most), int(x.max()*100))); self.mean.lerp_(x.mean().to(torch.bfloat16).expand(2), .1); self.seen[int(x.sum())%3] = True
        return self.net(x)

class OwnLoss(nn.Module):
    "Takes inputs by name, and returns its own loss"
    def __init__(self): super().__init__(); self.net = CNN()
    def forward(self, x, shift, labels=None):
        logits = self.net(x+shift)
        return dict(logits=logits) if labels is None else dict(loss=F.cross_entropy(logits, labels), logits=logits)

def named(n): return [dict(x=x[None].expand(4, -1, -1, -1), shift=torch.tensor(.1), labels=y.expand(4)) for x,y in images(n)]

class TwoInputs(CNN):
    def forward(self, x, scale): return super().forward(x*scale)

class Scaled(nn.Module):
    "A loss with a trained weight and its own running average"
    def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(())); self.register_buffer('mean', torch.zeros(()))
    def forward(self, pred, y):
        loss = F.cross_entropy(pred*self.scale, y)
        if pred.requires_grad: self.mean.lerp_(loss.detach(), .1)
        return loss

class ValidatesWithin(Callback):
    "Validates and predicts within a fit"
    def after_epoch(self):
        if self.learn.mode=='fit': self.learn.recorder.row['asked'] = self.learn.validate()[0]+float(self.learn.get_preds()[0].sum())
    def before_validate(self): torch.rand(1+self.learn.epoch)

class KeepsGrads(Callback):
    "Accumulates the gradients of two batches"
    def before_step(self):
        if self.learn.iter%2==0: raise CancelStep
    def before_zero_grad(self):
        if self.learn.iter%2==0: raise CancelZeroGrad

def batches_of(n): return [(x[None].expand(4, -1, -1, -1), y.expand(4)) for x,y in images(n)]

def stream():
    for x,y in batches_of(13): yield x+torch.randn(1),y

CASES = {
    'clip':          lambda: dict(cbs=GradientClip(.1)),
    'clip values':   lambda: dict(cbs=GradientClip(value=.01)),
    'one cycle':     lambda: dict(cbs=ParamScheduler(one_cycle(.01))),
    'EMA':           lambda: dict(cbs=EMACallback(.9)),
    'bf16':          lambda: dict(cbs=MixedPrecision('bf16')),
    'fp16':          lambda: dict(cbs=[MixedPrecision('fp16', init_scale=2.**20), GradientClip(.1)]),
    'MixUp':         lambda: dict(cbs=MixUp()),
    'CutMix':        lambda: dict(cbs=CutMix()),
    'MicroBatch':    lambda: dict(cbs=MicroBatch(3)),
    'SkipNaN':       lambda: dict(cbs=[SkipNaN(), Spoiled()]),
    'SkipNaN, 2':    lambda: dict(cbs=[SkipNaN(at_most=2), Spoiled()]),
    'SkipNaN, deaf': lambda: dict(cbs=[SkipNaN(wait=False), Spoiled()]),
    'cancelled 1':   lambda: dict(cbs=Leaves('after_fetch')),
    'cancelled 2':   lambda: dict(cbs=Leaves('before_batch')),
    'cancelled 3':   lambda: dict(cbs=Leaves('after_pred')),
    'cancelled 4':   lambda: dict(cbs=Leaves('after_loss')),
    'draws':         lambda: dict(cbs=Draws()),
    'early':         lambda: dict(cbs=[EarlyStoppingCallback('valid_loss', patience=1), ReduceLROnPlateau('train_loss', patience=1)]),
    'limited':       lambda: dict(cbs=[LimitBatches(3, 2), ValidateEvery('2ba')]),
    'indices':       lambda: dict(cbs=ItemIndices()),
    'prefetch':      lambda: dict(dl=DataLoader(images(45), 4, num_workers=1), cbs=Prefetch(thread=True)),
    'metrics':       lambda: dict(metrics=[AccumMetric(lambda p,y: float((p==y).double().var()), dim_argmax=-1), F1Score(average='macro'), right]),
    'noisy':         lambda: dict(ds=Noisy()),
    'workers':       lambda: dict(dl=DataLoader(Noisy(), 4, shuffle=True, num_workers=2)),
    'weighted':      lambda: dict(dl=DataLoader(images(45), 4, sampler=WeightedRandomSampler([1.]*40+[5.]*5, 50))),
    'batch sampler': lambda: dict(dl=DataLoader(images(45), batch_sampler=[[*range(i, min(45, i+1+i%5))] for i in range(0, 45, 3)])),
    'drop_last':     lambda: dict(dl=DataLoader(images(45), 4, shuffle=True, drop_last=True)),
    'one by one':    lambda: dict(dl=DataLoader(batches_of(10), batch_size=None, shuffle=True)),
    'few':           lambda: dict(ds=images(3)),
    'batches':       lambda: dict(dl=batches_of(10)),
    'stream':        lambda: dict(dl=stream),
    'class weights': lambda: dict(loss_func=nn.CrossEntropyLoss(torch.tensor([1.,2.,.5]))),
    'sum':           lambda: dict(loss_func=nn.CrossEntropyLoss(reduction='sum')),
    'ignored':       lambda: dict(loss_func=nn.CrossEntropyLoss(ignore_index=1), bs=1),
    'unused':        lambda: dict(model=SometimesUnused),
    'buffers':       lambda: dict(model=Counts),
    'bfloat16':      lambda: dict(model=lambda: CNN().bfloat16(), ds=TensorDataset(images(45)[:][0].bfloat16(), images(45)[:][1]), valid=[(images(8)[:][0].bfloat16(), images(8)[:][1])]),
    'double':        lambda: dict(model=lambda: CNN().double(), ds=TensorDataset(images(45)[:][0].double(), images(45)[:][1]), valid=[(images(8)[:][0].double(), images(8)[:][1])]),
    'own loss':      lambda: dict(model=OwnLoss, dl=named(10), valid=named(3), loss_func=None, metrics=None),
    'two inputs':    lambda: dict(model=TwoInputs, dl=[(x, torch.rand(4, 1, 1, 1, generator=torch.Generator().manual_seed(1)), y) for x,y in batches_of(10)], valid=[(x, torch.ones(1), y) for x,y in batches_of(2)]),
    'loss weights':  lambda: (lambda loss: dict(loss_func=loss, splitter=lambda m: [*m.parameters(), *loss.parameters()]))(Scaled()),
    'asks':          lambda: dict(cbs=ValidatesWithin()),
    'keeps grads':   lambda: dict(cbs=KeepsGrads()),
    'twice':         lambda: dict(twice=True),
    'frozen':        lambda: dict(splitter=lambda m: [[*nn.ModuleList([*m][:5]).parameters()], [*nn.ModuleList([*m][5:]).parameters()]], frozen=True),
}

def _all_cases(rank, world, names, n=4):
    res = {}
    for name in names:
        kw = CASES[name]()
        random.seed(7+rank); np.random.seed(7+rank)   # which the first process decides
        frozen,make,twice = kw.pop('frozen', False),kw.pop('model', CNN),kw.pop('twice', False)
        torch.manual_seed(1+rank)
        learn = learner('cnn', seed=None, model=make(), **kw)
        if frozen: learn.freeze()
        if twice: learn.fit(1, cbs=VirtualShards(2*n))
        learn.fit(3, cbs=VirtualShards(n))
        res[name] = result(learn) | {f'cb.{cb.key}':repr(cb.state_dict()) for cb in learn.cbs if cb.name in ('skip_nan',)}
    return res

@few(1, 0)
@pytest.mark.parametrize('worlds,names', [((2,), ['metrics']), *slow(*[((4,2)[i%2:i%2+1], [*CASES][i::4]) for i in range(4)])])
def test_with_other_callbacks_data_and_losses(processes, worlds, names):
    alone = _all_cases(0, 1, names)
    for world in worlds:
        several = processes(world, _all_cases, names)
        for k in names: same(alone[k], several[k], f'{k} in {world} processes: ')

# resuming in another number of processes

class PowerCut(Callback):
    acts,run_valid = 'nothing',False   # without it, it is the same run
    def __init__(self, at): self.at = at
    def after_batch(self):
        if self.learn.train_iter==self.at: raise KeyboardInterrupt

def _leg(rank, world, path, stop, n=4, ds=None):
    "Trains until batch `stop`, resuming where the last call ended"
    random.seed(rank+world)
    learn = learner('cnn', n=62, path=path, ds=ds() if ds else None, cbs=[EMACallback(.9), MixUp(), ParamScheduler(one_cycle(.02, 3))])
    if [*path.rglob('*.pth')]: torch.rand(3)   # random numbers drawn before a resumed fit may differ
    cbs = [VirtualShards(n), CheckpointCallback('1ba', keep=2), *[PowerCut(stop)]*(stop is not None)]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings('error', message='.*bit for bit')   # it does
            learn.fit(3, cbs=cbs, resume='auto')
    except KeyboardInterrupt: return {}
    return {0: result(learn)}

@pytest.mark.parametrize('worlds,ds', [((2,1), None), *slow(*[(w, Noisy) for w in ((1,2), (2,1,2), (4,2,1,4))])])
def test_continues_in_another_number_of_processes(processes, tmp_path, worlds, ds):
    stops = [3, 4, 6, 8, 9][:len(worlds)-1]   # in an epoch of 4, or 3, batches and at its end
    whole = _leg(0, 1, tmp_path/'whole', None, 4, ds)
    for world,stop in zip(worlds, [*stops, None]): last = processes(world, _leg, tmp_path/'legs', stop, 4, ds) if world>1 else _leg(0, 1, tmp_path/'legs', stop, 4, ds)
    same(whole[0], last[0])
    assert len([*(tmp_path/'legs').rglob('*.pth')])

def kill_one(world, path, victim, after):
    "Start `world` processes, and kill one of them at that time; returns whether it was still running"
    ctx = torch.multiprocessing.get_context('fork')
    store = path.with_name(f'{path.name}-{time.monotonic_ns()}')
    ps = [ctx.Process(target=_starts, args=(r, world, store, _leg, (path, None, 4, Noisy)), daemon=True) for r in range(world)]
    for p in ps: p.start()
    ps[victim].join(after)
    ps[victim].kill()
    for p in ps: p.join(1)   # they end by themselves, unless they are still waiting for the group
    for p in ps: p.kill(); p.join()
    return ps[victim].exitcode==-signal.SIGKILL

def killed_at_random(processes, path, n_kills, seconds, seed=0):
    "Kill one process at random moments, resume in the same or another number of them, and return the number of kills"
    rng,whole,begun,kills = random.Random(seed),_leg(0, 1, path/'whole', None, 4, Noisy),time.monotonic(),[]
    while len(kills)<n_kills and time.monotonic()-begun<seconds:
        folder = path/f'run{len(kills)}'
        for _ in range(rng.randint(1, 4)):
            world = rng.choice([1,2,4])
            if kill_one(world, folder, rng.randrange(world), rng.uniform(.05, 1.2)): kills.append(world)
        end = processes(world := rng.choice([1,2,4]), _leg, folder, None, 4, Noisy)
        same(whole[0], end[0])
    return kills

@pytest.mark.slow
def test_a_process_is_killed_at_random_moments(processes, tmp_path): assert len(killed_at_random(processes, tmp_path, 2, 30))>=1

# errors, warnings and logs

def check_raises(match, n=4, error=ValueError, cbs=(), fit=1, **kw):
    if any(isinstance(cb, Recorder) for cb in cbs): kw['default_cbs'] = False
    learn = learner('cnn', **kw)
    before = weights(learn)
    with pytest.raises(error, match=match): learn.fit(fit, cbs=[VirtualShards(n), *cbs])
    assert torch.equal(weights(learn), before) and not learn.ordered_cbs('before_train').filter(lambda cb: isinstance(cb, VirtualShards))

class Sparse(nn.Module):
    def __init__(self): super().__init__(); self.emb = nn.Embedding(12, 3, sparse=True)
    def forward(self, x): return self.emb(x[:,0,0,0].abs().long())

def raises(e):
    def f(cb): raise e
    return Callback(after_loss=f)

def cancels(cb): cb.learn.current_run.is_cancelled = True

@pytest.mark.parametrize('match,kw', [
    ('raise `n`', dict(cbs=[GradientAccumulation(8)])),
    ('`is_cancelled` was set for one of 4 shards.*Raise CancelBatch in `before_step`', dict(cbs=[Callback(after_backward=cancels)], error=RuntimeError)),
    *slow(('LimitBatches', dict(cbs=[StepsPerEpoch(2)])), ('LimitBatches', dict(cbs=[OverfitBatches(1)])), ('SkipNaN', dict(cbs=[RollBackOnNaN()])), ('MicroBatch', dict(cbs=[ReplayOnOOM()])), ('remove it', dict(cbs=[FusedStep()])),
          ('remove `DistributedTrainer`', dict(cbs=[DistributedTrainer()])), ('count batches', dict(cbs=[CheckpointCallback('100sp')])), ('count batches', dict(fit='100sp')), ('some shards of each batch', dict(cbs=[Recorder(train_metrics=True)])),
          ('SyncBatchNorm', dict(model=nn.SyncBatchNorm.convert_sync_batchnorm(CNN()))), ('complex', dict(model=nn.Sequential(CNN(), nn.Linear(3, 3, dtype=torch.complex64)))), ('sparse=False', dict(model=Sparse(), opt_func=torch.optim.SGD)),
          ('CancelTrain was raised for one of 4 shards', dict(cbs=[raises(CancelTrain)], error=RuntimeError)), ('CancelFit was raised', dict(cbs=[raises(CancelFit)], error=RuntimeError)))])
def test_unsupported_settings_raise(match, kw):
    check_raises(match, **kw)

def test_arguments():
    for n in (0, -1, 2.5, '4', None): 
        with pytest.raises((ValueError, TypeError)): VirtualShards(n)

def _cannot_share(rank, world):
    with pytest.raises(ValueError, match=r'3 processes cannot share 4 shards.*write VirtualShards\(3\) or VirtualShards\(6\)'): learner('cnn').fit(1, cbs=VirtualShards(4))
    return {0: result(fitted(6))}

def fitted(n, *cbs, **kw):
    learn = learner('cnn', **kw)
    learn.fit(2, cbs=[VirtualShards(n), *cbs])
    return learn

@pytest.mark.slow
def test_three_processes(processes): same(processes(3, _cannot_share)[0], result(fitted(6)))

def test_one_shard_is_a_plain_fit():
    "With one shard a batch and no random numbers, training equals the loop without the callback bit for bit"
    data = [*DataLoader(images(20), 4)]
    def plain(*cbs):
        learn = learner('cnn', dl=data, model=nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), made_linear()))
        learn.fit(2, cbs=[*cbs])
        return {k:v for k,v in result(learn).items() if k!='random'}
    def made_linear(): return nn.Linear(144, 3)
    torch.manual_seed(0); a = plain()
    torch.manual_seed(0); b = plain(VirtualShards(1))
    same(a, b)

@pytest.mark.slow
def test_threads_are_reported(tmp_path):
    "A run resumed with another number of threads warns, because its sums are rounded otherwise"
    fitted(2, CheckpointCallback('2ba'), PowerCut(-1), path=tmp_path)
    torch.set_num_threads(2)
    try:
        learn = learner('cnn', path=tmp_path)
        with pytest.warns(UserWarning, match=r'began with 1 threads and now has 2.*`torch.set_num_threads\(1\)`'): learn.fit(3, cbs=[VirtualShards(2), CheckpointCallback('2ba')], resume='auto')
    finally: torch.set_num_threads(1)

def _prints_and_writes(rank, world, path):
    rows,bar = [],[]
    class Bar(Callback):
        name = 'progress'
        def after_epoch(self): bar.append(self.learn.epoch)
    learn = learner('cnn', path=path)
    learn.logger = log = rows.append
    learn.fit(2, cbs=[VirtualShards(4), shows := Bar(), JsonLogger(path/'log.jsonl'), SaveModelCallback('valid_loss')])
    assert bar==([] if rank else [0,1]) and len(rows)==(0 if rank else 2)
    assert learn.logger is log and shows.run
    preds,_ = learn.get_preds()
    assert len(preds)==10
    return {0: result(learn)}

@pytest.mark.slow
def test_only_process_0_prints_and_writes(processes, tmp_path):
    processes(2, _prints_and_writes, tmp_path)
    assert len(JsonLogger(tmp_path/'log.jsonl').read_log())>=2

def _stops(rank, world):
    "Processes of different speed stop at the same batch with a time limit"
    class Ticks(Callback):
        run_valid = False
        def after_batch(self): time.sleep(.01*(1+rank))
    learn = learner('cnn', n=450)
    learn.fit(20, cbs=[VirtualShards(4), Ticks(), StopAfter('0.3s')])
    return {0: result(learn)}

@pytest.mark.slow
def test_processes_stop_at_the_same_batch(processes): processes(2, _stops)

# what shards log

def _logs(rank, world, loss_sums):
    from learnkit.all import Logged, Recorder, log_value
    def parts(pred, y):
        log_value('said', pred.abs().mean())
        return dict(ce=F.cross_entropy(pred, y, reduction='sum' if loss_sums else 'mean'), small=pred.pow(2).mean())
    if loss_sums: parts.reduction = 'sum'
    class Once(Callback):
        def after_pred(self): self.log('first', self.xb[0].mean())
        def after_step(self): self.log('norm', self.model[0].weight.norm())
    learn = learner('cnn', loss_func=parts, metrics=[*map(Logged, ('said','ce','small','first','norm'))], cbs=Once())
    learn.fit(2, cbs=VirtualShards(4))
    return {0:result(learn)}

@pytest.mark.slow
@pytest.mark.parametrize('loss_sums', [False, True])
def test_what_shards_log_is_the_same_in_two_processes(processes, loss_sums):
    one,two = processes(1, _logs, loss_sums)[0],processes(2, _logs, loss_sums)[0]
    same(one, two)
    assert one['train_first.0']==pytest.approx(images(45).tensors[0].mean().item(), abs=1e-6) and one['train_norm.0']>0
