"""Inference leaves no trace: at any event, over any loader and with any callbacks, all state is bit for bit the same
before and after it, and a fit has the same weights with and without it. The same for `lr_find` and `learn.unchanged`,
which train and restore."""
import gc, multiprocessing, random, re, threading, warnings
from functools import partial
import numpy as np, pytest, torch
from torch import nn
from torch.optim import SGD, Adam
from torch.utils.data import (BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler, Subset, SubsetRandomSampler,
                              TensorDataset, WeightedRandomSampler, get_worker_info)

import learnkit.all as lk
from learnkit.loop.callback import Callback
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import event
from learnkit.learner.learner import Learner
from learnkit.observe.interpret import Interpretation
from learnkit.observe.tta import MCDropoutCallback
from toys import at, few, slow, weights
from trace import changes, late, record

pytestmark = few(10_000, 2)   # 2 of the slow cases of each test; all with LEARNKIT_SWEEP=1

@pytest.fixture(autouse=True)
def quick_collections():
    "Freeze existing objects, as each recording collects garbage, which took half a second with the compiler loaded"
    gc.collect(); gc.freeze()

# objects with state
def gen(s=3): return torch.Generator().manual_seed(s)
N = 12
X = torch.randn(N, 4, generator=gen(0))

class Jitter:
    "A transform that draws from four kinds of generators of its own, and from those of the process"
    def __init__(self): self.py,self.np,self.old,self.torch = random.Random(1),np.random.default_rng(1),np.random.RandomState(1),gen(1)
    def __call__(self, x):
        own = self.py.random() + self.np.random() + self.old.rand() + torch.rand(1, generator=self.torch)
        return x*(1 + .01*own) + .01*(random.random() + np.random.rand() + torch.rand(1))

class Samples(Dataset):
    "Counts its reads in an attribute, a list and a dictionary, and returns samples that depend on these counts"
    def __init__(self): self.tfms,self.n,self.log,self.times = [Jitter()],0,[],{}
    def __len__(self): return N
    def __getitem__(self, i):
        self.n += 1; self.log.append(i); self.times[i] = self.times.get(i, 0)+1
        x = X[i] + .001*self.n + .01*self.times[i]
        for f in self.tfms: x = f(x)
        return x,X[i].sum()[None]

class Stream(IterableDataset):
    "A stream that starts at another sample in each pass"
    def __init__(self): self.items,self.passes = Samples(),0
    def __iter__(self):
        self.passes += 1
        w = get_worker_info()
        for i in range(w.id if w else 0, N, w.num_workers if w else 1): yield self.items[(i+self.passes)%N]

class OwnSampler(Sampler):
    "A sampler whose order depends on the number of the pass, as that of a `DistributedSampler` on its epoch"
    def __init__(self): self.epoch,self.seen = 0,[]
    def __len__(self): return N
    def __iter__(self):
        self.epoch += 1; self.seen.append(self.epoch)
        return iter(torch.randperm(N, generator=gen(self.epoch)).tolist())

class OwnBatches(OwnSampler):
    def __init__(self): super().__init__(); self.rng = random.Random(2)
    def __len__(self): return N//4
    def __iter__(self):
        idxs = self.rng.sample([*super().__iter__()], N)
        return iter([idxs[i:i+4] for i in range(0, N, 4)])

class Itself:
    "A loader that is its own iterator"
    def __init__(self, ds): self.ds,self.i = ds,0
    def __len__(self): return N//4
    def __iter__(self): self.i = 0; return self
    def __next__(self):
        if self.i>=N: raise StopIteration
        self.i += 4
        return tuple(map(torch.stack, zip(*[self.ds[j] for j in range(self.i-4, self.i)])))

class Around:
    "A loader around another one"
    def __init__(self, dl): self.dl,self.batches = dl,0
    def __len__(self): return len(self.dl)
    def __iter__(self):
        for b in self.dl: self.batches += 1; yield b

def both(f): return DataLoaders(f(), f())
def plain(**kw): return both(lambda: DataLoader(Samples(), 4, **kw))
def shared(**kw):
    g,ds = gen(5),Samples()
    return both(lambda: DataLoader(ds, 4, shuffle=True, generator=g, **kw))
def function():
    ds,g = Samples(),random.Random(4)
    def batches():
        for _ in range(3): yield tuple(map(torch.stack, zip(*[ds[i] for i in g.sample(range(N), 4)])))
    return DataLoaders(batches, batches)
def listed():
    ds = TensorDataset(X, X.sum(1, keepdim=True))
    return both(lambda: [ds[i:i+4] for i in range(0, N, 4)])
def sampled(make): return both(lambda: DataLoader(ds := Samples(), 4, sampler=make(ds)))
def around(): return both(lambda: Around(DataLoader(Samples(), 4, shuffle=True, num_workers=1, persistent_workers=True)))
def one_for_both(**kw):
    dl = DataLoader(Samples(), 4, shuffle=True, **kw)
    return DataLoaders(dl, dl)

LOADERS = dict(
    list=listed, function=function, shuffle=partial(plain, shuffle=True), shared=shared, itself=lambda: both(lambda: Itself(Samples())),
    tensors=lambda: both(lambda: DataLoader(TensorDataset(X, X.sum(1, keepdim=True)), 4, shuffle=True)),
    iterable=lambda: both(lambda: DataLoader(Stream(), 4)), one=one_for_both, drop_last=partial(plain, shuffle=True, drop_last=True),
    subset_of=lambda: both(lambda: DataLoader(Subset(ConcatDataset([Samples(), Samples()]), range(N)), 4, shuffle=True)),
    weighted=lambda: sampled(lambda ds: WeightedRandomSampler([1.+i for i in range(N)], N)),
    weighted_own=lambda: sampled(lambda ds: WeightedRandomSampler([1.+i for i in range(N)], N, generator=gen())),
    subset=lambda: sampled(lambda ds: SubsetRandomSampler([*range(N)])), replacement=lambda: sampled(lambda ds: RandomSampler(ds, True, N)),
    own_sampler=lambda: sampled(lambda ds: OwnSampler()), batch_sampler=lambda: both(lambda: DataLoader(Samples(), batch_sampler=OwnBatches())),
    batches_of=lambda: both(lambda: DataLoader(ds := Samples(), batch_sampler=BatchSampler(RandomSampler(ds, generator=gen()), 4, False))))
WORKERS = dict(
    workers=partial(plain, shuffle=True, num_workers=2), persistent=partial(plain, shuffle=True, num_workers=2, persistent_workers=True),
    shared_persistent=partial(shared, num_workers=1, persistent_workers=True), one_persistent=partial(one_for_both, num_workers=2, persistent_workers=True),
    iterable_workers=lambda: both(lambda: DataLoader(Stream(), 4, num_workers=2)), around=around)

class Net(nn.Module):
    "A model that stores state of many kinds in its forward pass, and computes with it"
    def __init__(self):
        super().__init__()
        self.body,self.head,self.g = nn.Sequential(nn.Linear(4,6), nn.BatchNorm1d(6), nn.Dropout(.3)),nn.Linear(6,1),gen(7)
        self.register_buffer('mean', torch.zeros(6)); self.register_buffer('seen', torch.zeros(1), persistent=False)
        self.calls,self.shapes,self.last,self.pairs,self.frozen = 0,[],{},(torch.zeros(6),[0]),nn.Parameter(torch.ones(1), requires_grad=False)
    def forward(self, x):
        h = self.body(x)
        self.calls += 1; self.shapes.append(x.shape); self.seen += 1
        self.mean = .9*self.mean + .1*h.detach().mean(0)
        self.pairs[0].add_(h.detach().mean(0)); self.pairs[1][0] += 1
        old,self.last['h'] = self.last.get('h', 0.),h.detach().mean()
        return self.head(h + .01*(self.mean + self.pairs[0]) + .001*torch.rand(6, generator=self.g)) + .01*old + .001*(self.calls+len(self.shapes)+self.seen)

class Loss:
    "A loss function that is not a module, and counts its calls"
    def __init__(self): self.n,self.seen,self.rng = 0,[],np.random.RandomState(1)
    def __call__(self, pred, y):
        self.n += 1; self.seen.append(self.n)
        return ((pred-y)**2).mean()*(1 + .001*self.n + .01*self.rng.rand())

def learner(dls, cbs=None, opt_func=partial(SGD, momentum=.9), net=Net, loss=nn.MSELoss, **kw):
    random.seed(1); np.random.seed(1); torch.manual_seed(1)
    learn = Learner(dls, net(), loss(), opt_func=opt_func, lr=.01, cbs=cbs, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

# the recording
def items(learn): return learn.dls.train.dataset
TOUCHES = dict(
    parameter=lambda l: l.model.head.weight.data.add_(1), buffer=lambda l: l.model.seen.add_(1), mode=lambda l: l.model.body[2].train(),
    grad=lambda l: setattr(l.model.head.weight, 'grad', torch.ones(1, 6)), frozen=lambda l: l.model.head.weight.requires_grad_(False),
    in_a_list=lambda l: l.model.shapes.append(1), in_a_tuple=lambda l: l.model.pairs[0].add_(1), generator=lambda l: torch.rand(1, generator=l.model.g),
    optimizer=lambda l: l.opt.opt.state[l.model.head.weight]['momentum_buffer'].add_(1), rate=lambda l: l.opt.set_hyper('lr', 1.),
    counter=lambda l: setattr(items(l), 'n', -1), dictionary=lambda l: items(l).times.update({0:-1}), transform=lambda l: items(l).tfms[0].old.rand(),
    sampler=lambda l: setattr(l.dls.train.sampler, 'epoch', -1), callback=lambda l: l.collects.seen.append(1), callbacks=lambda l: l.remove_cb(l.collects),
    state=lambda l: l.state.update(a=1), python=lambda l: random.random(), numpy=lambda l: np.random.rand(), torch=lambda l: torch.rand(1),
    autocast=lambda l: torch.set_autocast_cache_enabled(False), thread=lambda l: threading.Thread(target=threading.Event().wait, daemon=True).start())

@pytest.mark.parametrize('touch', TOUCHES)
def test_the_recording_finds_each_change(touch):
    "And it finds none if nothing is done"
    learn = learner(LOADERS['own_sampler'](), cbs=Collects(), loss=Loss)
    learn.fit(1)
    try: assert trace(learn, lambda l: None)==[] and trace(learn, TOUCHES[touch])
    finally: torch.set_autocast_cache_enabled(True)

def test_the_recording_waits_for_workers_of_other_loaders():
    "Workers of an earlier test's loader, while another thread collected it, were in one recording and not the next"
    class Cycle: pass
    o = Cycle()
    o.dl,o.me = plain(num_workers=2, persistent_workers=True).train,o
    next(it := iter(o.dl))
    n = len(it._workers)
    del o,it
    assert len(multiprocessing.active_children())>=n
    t = threading.Thread(target=gc.collect, name=late[0])
    t.start()
    learn = learner(LOADERS['own_sampler']())
    assert trace(learn, lambda l: t.join())==[]

# inference
GRID = [(X[:4], X[:4].sum(1, keepdim=True))]
LOOKS = dict(
    validate=lambda l: l.validate(), validate_train=lambda l: l.validate(0), get_preds=lambda l: l.get_preds(with_loss=True, with_input=True),
    preds_train=lambda l: l.get_preds(0), unordered=lambda l: l.get_preds(0, reorder=False), predict=lambda l: l.predict(X[0]),
    tta=lambda l: l.tta(0, n=2, aug=lambda x: x+.1*torch.randn_like(x)), interpretation=lambda l: Interpretation.from_learner(l),
    mc=lambda l: [l.get_preds(0, cbs=MCDropoutCallback) for _ in range(2)], given=lambda l: l.get_preds(dl=GRID), all=lambda l: l.validate_all(),
    summary=lambda l: l.summary())

def raises(look):
    "`look` on a loader with another order in each pass: it raises, and that leaves no trace either"
    def f(learn):
        with pytest.raises(ValueError, match='in a different order each time'): look(learn)
    return f
def look_at(kind, look): return raises(LOOKS[look]) if look=='tta' and kind in ('weighted','replacement','around') else LOOKS[look]

def trace(learn, look, **kw):
    "The state that `look(learn)` changes"
    before = record(learn=learn, grid=GRID)
    look(learn)
    return changes(before, record(learn=learn, grid=GRID), **kw)

def in_run(path): return path=='learn._n_draws'
def alone(path):
    "Whether a change may stay outside of a run: the result, and state that model, loss and metrics store"
    return in_run(path) or re.match(r'learn\.(final_record|model|_metrics|loss_func)\b', path) is not None

# these are set in each phase, depend on time, or are the result of FetchPredsCallback
LIVE = r"\.(device_type|stopwatch|was_running|preds)\b"
class Looks(Callback):
    "Calls `look` at one event of each epoch, and records what it changed"
    def __init__(self, look, ev, order=0, training=True):
        self.found,self.n_looks = [],0
        def f(self):
            learn = self.learn
            if learn.mode!='fit' or (ev in event.in_batch and (learn.training!=training or learn.iter>1)): return
            self.n_looks += 1
            self.found += [f'{ev}: {c}' for c in trace(learn, look, allow=lambda p: in_run(p) or '.found' in p or '.n_looks' in p or re.search(LIVE, p))]
        self.order = order
        super().__init__(**{ev:f})

def fit_with(make, look, ev, **kw):
    "The weights after a fit in which `look` is called at event `ev`, what it changed, and the number of calls"
    learn = make()
    if ev is not None: learn.add_cb(Looks(look, ev, **kw))
    learn.fit(2)
    return weights(learn),*((learn.looks.found, learn.looks.n_looks) if ev is not None else ())

_plain = {}
def plain_fit(name, make):
    if name not in _plain: _plain[name] = fit_with(make, None, None)[0]
    return _plain[name]

def check(name, make, look, ev, **kw):
    w,found,n = fit_with(make, look, ev, **kw)
    assert n and not found, found[:6]
    assert torch.equal(w, plain_fit(name, make)), f'{ev}: the fit went another way'

# loaders

@few(3, 4)
@pytest.mark.parametrize('look', ['preds_train', *slow(*(k for k in LOOKS if k!='preds_train'))])
@pytest.mark.parametrize('kind', LOADERS)
def test_in_a_fit(kind, look):
    """Inference over every kind of loader. `get_preds(0)` used to draw from weighted, subset and replacement samplers,
    custom batch samplers and augmenting datasets, even with `reorder=False`, as did `validate()` where both loaders
    share a generator; a model's state and counters changed"""
    for ev in ('after_batch','before_batch','after_pred','after_backward','before_train','after_epoch','before_fit')[:7 if kind=='shuffle' else 3]:
        check(kind, lambda: learner(LOADERS[kind]()), look_at(kind, look), ev)
    check(kind, lambda: learner(LOADERS[kind]()), look_at(kind, look), 'after_batch', training=False)

@few(0, 1)
@pytest.mark.parametrize('look', ['validate', *slow('preds_train','unordered','validate_train','tta','mc')])
@pytest.mark.parametrize('kind', ['one_persistent', *slow(*(k for k in WORKERS if k!='one_persistent'))])
def test_workers_in_use(kind, look):
    "Inference reset the only iterator of a loader with persistent workers: an epoch of 16 batches ended after 4"
    seen = []
    def make(): seen.clear(); return learner(WORKERS[kind](), cbs=at('after_batch', lambda cb: seen.append(cb.training), lambda cb: cb.mode=='fit'))
    fit_with(make, None, None)
    straight = [*seen]   # an iterable dataset without sharding is read whole by each worker
    assert straight==([True]*(n := straight.index(False))+[False]*n)*2
    for training in (True, False):
        check(kind, make, look_at(kind, look), 'after_batch', training=training)
        assert seen==straight

@few(6, 4)
@pytest.mark.parametrize('look', LOOKS)
@pytest.mark.parametrize('kind', ['own_sampler', *slow(*(k for k in {**LOADERS, **WORKERS} if k!='own_sampler'))])
def test_alone(kind, look):
    "Before and between fits, only the result and the state that the model itself stores change"
    if look=='mc': pytest.skip('it draws its numbers for good')
    learn = learner({**LOADERS, **WORKERS}[kind]())
    for first in (True, False):
        assert trace(learn, look_at(kind, look), allow=alone)==[], (kind, look, first)
        if first: learn.fit(1)
    for p in learn.model.parameters(): p.grad = torch.ones_like(p)
    learn.model.body[2].eval(); learn.model.frozen.requires_grad_(True)
    assert trace(learn, look_at(kind, look), allow=alone)==[]

def test_muted_callbacks_stay_muted():
    "`validate` unmuted a callback that was muted for the next fit, and reset `stop_reason`"
    learn = learner(listed(), cbs=at('after_batch', lambda cb: cb.learn.stop('enough')))
    learn.fit(1)
    learn.cbs[-1].run = False
    assert learn.stop_reason=='enough'
    assert trace(learn, lambda l: l.validate(), allow=alone)==[]

# callbacks

def rates(learn): return lk.ParamScheduler({'lr':lk.SchedCos(.05, .001)})
CALLBACKS = dict(
    ema=lambda: [lk.EMACallback(.5)], amp=lambda: [lk.MixedPrecision('fp16')], bf16=lambda: [lk.MixedPrecision('bf16')],
    ema_amp=lambda: [lk.EMACallback(.5), lk.MixedPrecision('fp16')], mixup=lambda: [lk.MixUp()], accumulate=lambda: [lk.GradientAccumulation(8)],
    clip=lambda: [lk.GradientClip(.1)], micro=lambda: [lk.MicroBatch(2)], schedule=lambda: [rates(None)],
    torch_schedule=lambda: [lk.TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=1))], bn=lambda: [lk.BnFreeze()],
    limit=lambda: [lk.LimitBatches(2, 2)], short=lambda: [lk.ShortEpochCallback(.5)], overfit=lambda: [lk.OverfitBatches(2)],
    indices=lambda: [lk.ItemIndices()], skip_nan=lambda: [lk.SkipNaN()], roll_back=lambda: [lk.RollBackOnNaN('2ba')],
    every=lambda: [lk.ValidateEvery('2ba')], evaluator=lambda: [lk.Evaluator('x', listed().valid, every='2ba')], sanity=lambda: [lk.SanityCheck()],
    tracker=lambda: [lk.TrackerCallback(), lk.EarlyStoppingCallback(patience=5), lk.SaveModelCallback(), lk.ReduceLROnPlateau()],
    stats=lambda: [lk.ActivationStats()], fetch=lambda: [lk.FetchPredsCallback()], csv=lambda: [lk.CSVLogger(), lk.JsonLogger()],
    monitors=lambda: [lk.LossMonitor('2ba'), lk.LRMonitor('2ba'), lk.OptimizerMonitor('2ba'), lk.MemoryMonitor('2ba')], timer=lambda: [lk.Clock(), lk.TimerCallback()],
    checkpoint=lambda: [lk.CheckpointCallback('2ba', background=False)], replay=lambda: [lk.ReplayOnOOM()], mc=lambda: [MCDropoutCallback()],
    cycles=lambda: [lk.Cycles('2ba')], profile=lambda: [lk.ProfileCallback()], stop=lambda: [lk.StopAfter('5ba')], move=lambda: [lk.MoveModules()])
MOMENTS = 'before_fit','before_epoch','before_train','before_batch','before_pred','after_pred','before_loss','after_loss','before_backward','after_backward', \
          'before_step','after_step','before_zero_grad','after_zero_grad','after_batch','after_train','before_validate','after_validate','after_epoch','after_fit'

@few(2, 2)
@pytest.mark.parametrize('cb', ['ema_amp','evaluator','sanity','tracker', *slow(*(k for k in CALLBACKS if k not in ('ema_amp','evaluator','sanity','tracker')))])
@pytest.mark.parametrize('look', ['validate', *slow('preds_train','tta','predict')])
def test_with_callbacks(cb, look, tmp_path, monkeypatch):
    "Inference at the events of a fit, before and after all other callbacks, does not change their attributes"
    monkeypatch.chdir(tmp_path)
    count = iter(range(1000))
    def make(): return learner(plain(shuffle=True), cbs=CALLBACKS[cb](), path=tmp_path/str(next(count)))
    # a fifth of the events; all would take an hour
    moments = [(ev,o) for i,ev in enumerate(MOMENTS) for o in (-60, 95)][hash_of(cb+look)%5::5]
    for ev,order in moments: check(cb, make, LOOKS[look], ev, order=order)

def hash_of(s): return sum(map(ord, s))

# trials that are undone
class Collects(Callback):
    "A callback without `saves`"
    def __init__(self): self.n,self.seen,self.by = 0,[],{}
    def after_batch(self):
        learn = self.learn
        self.n += 1; self.seen.append(learn.loss); self.by[learn.iter] = self.n
        learn.state.n = learn.state.get('n', 0)+1

def lr_find(learn): learn.lr_find(num_it=6, show_plot=False, suggest_funcs=None)
def trial(learn):
    with learn.unchanged(): learn.freeze(); learn.fit(1)
def interrupted(learn):
    with pytest.raises(KeyboardInterrupt), learn.unchanged(): learn.fit(1, cbs=Callback(after_backward=stop))
def stop(cb): raise KeyboardInterrupt
TRIALS = dict(lr_find=lr_find, trial=trial, interrupted=interrupted)

@few(4, 4)
@pytest.mark.filterwarnings('ignore:There is only one group')
@pytest.mark.parametrize('opt', [partial(SGD, momentum=.9), *slow(Adam)])
@pytest.mark.parametrize('way', TRIALS)
@pytest.mark.parametrize('kind', ['own_sampler','batch_sampler','subset_of','iterable','function', *slow(*(k for k in {**LOADERS, **WORKERS} if k not in
                                  ('own_sampler','batch_sampler','subset_of','iterable','function')))])
def test_trials(kind, way, opt):
    """A trial used to leave changes in lists and dictionaries of modules, `RandomState`s, generators below the dataset,
    counters of datasets and samplers, loss objects, `learn.state`, callbacks without `saves`, and in which parameters
    are trained"""
    def run(way):
        learn = learner({**LOADERS, **WORKERS}[kind](), cbs=Collects(), loss=Loss, opt_func=opt)
        for _ in range(2):
            if way is not None: assert trace(learn, way, allow=lambda p: 'lr_curve' in p)==[]
            learn.fit(1)
        return weights(learn)
    assert torch.equal(run(TRIALS[way]), run(None))

# what cannot be restored
class Tape(IterableDataset):
    "Samples of one generator, which cannot be rewound"
    def __init__(self): self.items,self.n = iter(zip(X, X.sum(1, keepdim=True))),0
    def __iter__(self):
        for o in self.items: self.n += 1; yield o

def test_a_generator_that_cannot_be_rewound_warns():
    "One warning names the attribute, and the counter is not restored either, so that it fits the generator"
    learn = learner(both(lambda: DataLoader(Tape(), 4)))
    with pytest.warns(UserWarning, match='Reading this Tape has changed it.*`items`'): learn.validate()
    assert learn.dls.valid.dataset.n==N

def test_two_threads_draw_no_number_twice():
    "`validate()` used to restore a generator that another thread draws from: of 400 numbers there 90 were distinct"
    drawn,go = [],threading.Event()
    def draw(cb): drawn.append(torch.rand(1).item()); go.set()
    a,b = learner([listed().train*20], cbs=at('before_batch', draw)),learner(plain(shuffle=True))
    t = threading.Thread(target=a.fit, args=(2,))
    t.start(); go.wait(20)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        while t.is_alive(): b.validate()
    t.join()
    assert len({*drawn})==len(drawn)==120
    assert any('another thread ran a Learner' in str(w.message) for w in warned)

def test_random_predictions():
    """Predictions with dropout differ from call to call, even in a fit, without changing it; between runs a seed
    repeats them"""
    mc = partial(Learner.get_preds, cbs=MCDropoutCallback)
    net = lambda: nn.Sequential(nn.Linear(4,8), nn.Dropout(.5), nn.Linear(8,1))
    learn = learner(listed(), net=net)
    torch.manual_seed(5); a,b = mc(learn)[0],mc(learn)[0]
    torch.manual_seed(5); c = mc(learn)[0]
    assert torch.equal(a, c) and not torch.equal(a, b)
    got = []
    def make(look): return learner(plain(shuffle=True), net=net, cbs=at('after_batch', lambda cb: got.append([mc(cb.learn)[0] for _ in range(3)]),
                                                                        lambda cb: look and cb.training))
    w = []
    for look in (False, True): l = make(look); l.fit(2); w.append(weights(l))
    assert torch.equal(*w) and got and not any(torch.equal(x, y) for x,y,z in got) and not any(torch.equal(y, z) for x,y,z in got)
