"""Virtual epochs: their batches in sequence are those of the passes over the data, for any data and epoch length;
and a run killed in the middle of one and resumed ends as an uninterrupted run."""
import copy, itertools, random, warnings

import numpy as np, pytest, torch
from torch import nn
from torch.optim import SGD
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler

from learnkit.loop.callback import Callback
from learnkit.callbacks.intervals import EveryCallback
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelTrain
from learnkit.callbacks.batches import ItemIndices
from learnkit.callbacks.batches import Prefetch
from learnkit.data.random import set_seed
from learnkit.callbacks.batches import OngoingLoader, StepsPerEpoch
from learnkit.learner.learner import Learner
from learnkit.learner.fit import LimitBatches
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.callbacks.schedules import *
from learnkit.optim.schedule import warmup_lin
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.loop import Limited
from toys import at, few, slow, throw

pytestmark = few(10_000, 1)   # one slow case of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)
N,BS,L = 14,2,7   # 7 batches in a pass over the data

def noise(): return [random.random(), float(np.random.rand()), float(torch.rand(()))]
def row(i): return torch.tensor([i/N, *noise()]), torch.tensor([i/N])
class Noisy(Dataset):
    "Draws from all three random generators"
    def __len__(self): return N
    def __getitem__(self, i): return row(i)
class Stream(IterableDataset):
    "An iterable dataset that draws random numbers"
    def __iter__(self): return map(row, range(N))
class Stateful(IterableDataset):
    "A stateful iterable dataset: its position, and a count that continues over passes"
    def __init__(self): self.i,self.n,self.at = 0,0,0
    def __iter__(self):
        self.i,self.at = self.at,0
        while self.i<N:
            self.i,self.n = self.i+1,self.n+1
            x,y = row(self.i-1)
            yield x+self.n/100, y
    def state_dict(self): return dict(i=self.i, n=self.n)
    def load_state_dict(self, d): self.at,self.n = d['i'],d['n']
class Own:
    "A loader of another library: it has no `Dataset` and no `len`"
    def __iter__(self):
        for i in range(L): x,y = row(i); yield x[None], y[None]
class Endless:
    "A sampler without an end"
    def __iter__(self):
        while True: yield from torch.randperm(N).tolist()
class Rotating:
    "A stateful sampler that rotates the indices by one more at each pass"
    def __init__(self): self.n = 0
    def __len__(self): return N
    def __iter__(self): self.n += 1; k = self.n; return iter([(i+k)%N for i in range(N)])
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, d): self.n = d['n']

KINDS = dict(
    shuffled=lambda: DataLoader(Noisy(), BS, shuffle=True), short=lambda: DataLoader(Noisy(), 4, shuffle=True), stream=lambda: DataLoader(Stream(), BS),
    placed=lambda: DataLoader(Stateful(), BS), own=Own, listed=lambda: [(torch.full((2,4), i/9.), torch.ones(2,1)) for i in range(L)],
    endless=lambda: DataLoader(Noisy(), BS, sampler=Endless()), turning=lambda: DataLoader(Noisy(), BS, sampler=Rotating()),
    batches=lambda: DataLoader(Noisy(), batch_sampler=BatchSampler(RandomSampler(range(N)), 3, False)),
    unbatched=lambda: DataLoader([(torch.full((2,4), i/9.), torch.ones(2,1)) for i in range(L)], batch_size=None, shuffle=True),
    workers=lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=2), persistent=lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=1, persistent_workers=True))

class Seen(Callback):
    "Records the training batches; ends the run after batch `die`"
    acts,order,run_valid = 'nothing',10_000,False
    def __init__(self, die=None): self.die,self.seen = die,{}
    def after_batch(self):
        if self.learn.mode!='fit': return
        self.seen[self.learn.train_iter] = [t.clone() for t in (*self.learn.xb, *self.learn.yb)]
        if self.learn.train_iter==self.die: raise SystemError('the power failed')

def learner(dl, path='.', cbs=()):
    torch.manual_seed(0); random.seed(0); np.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(.3), nn.Linear(4, 1))
    learn = Learner(DataLoaders(dl, [(torch.ones(2,4), torch.ones(2,1))]), model, nn.MSELoss(), SGD, lr=.1, path=path, cbs=cbs)
    return learn.remove_cb(learn.progress)

def run(dl, n, path='.', epochs=3, die=None, every=None, cbs=(), **kw):
    cb,checkpoints = Seen(die),[CheckpointCallback(every, keep=None)] if every else []
    learn = learner(dl, path, [StepsPerEpoch(n), cb, *checkpoints, *cbs])
    with learn.no_logging():
        if die is None: learn.fit(epochs, **kw)
        else:
            with pytest.raises(SystemError): learn.fit(epochs, **kw)
    return learn,cb.seen

def same(a, b): return a.keys()==b.keys() and all(torch.equal(s, t) for k in a for s,t in zip(a[k], b[k], strict=True))
def weights(learn): return {k:[v] for k,v in learn.model.state_dict().items()}
def flat(seen): return [b for _,b in sorted(seen.items())]

def passes(dl, n):
    "The first `n` batches of repeated passes over `dl`"
    return [*itertools.islice((b for k in range(n) for b in itertools.islice(dl, n)), n)]

@pytest.mark.parametrize('n', [3, *slow(1, 7, 10, 20)])
@pytest.mark.parametrize('kind', [k for k in KINDS if k not in ('workers','persistent')] + slow('workers', 'persistent'))
def test_epochs_continue_the_passes(kind, n):
    "At the end of an epoch or a pass no batch is lost or repeated, and each pass equals the loader's own"
    set_seed(5)
    dl = OngoingLoader(KINDS[kind](), n)
    got = [b for _ in range(4) for b in Limited(iter(dl), n)]
    set_seed(5)
    want = passes(KINDS[kind](), 4*n)
    assert len(got)==4*n
    for a,b in zip(got, want, strict=True): assert all(map(torch.equal, a, b))

def killed(kind, n, ks, path, epochs=3):
    straight,seen = run(KINDS[kind](), n, path/'a', epochs, every='4ba')
    for k in ks:
        kw = dict(path=path/str(k), epochs=epochs, every='1ba' if k%2 else '2ba')
        _,first = run(KINDS[kind](), n, die=k, **kw)
        learn,second = run(KINDS[kind](), n, resume='auto', **kw)
        assert same({**first, **second}, seen), f'{kind}: other batches after a kill at batch {k}'
        assert all(torch.equal(a, b) for i in first.keys() & second.keys() for a,b in zip(first[i], second[i], strict=True))
        assert same(weights(learn), weights(straight))

@pytest.mark.parametrize('kind,k', [('shuffled',9), ('placed',9), *slow(('stream',6), ('turning',9), ('endless',9))])
def test_resumes_within_an_epoch(kind, k, tmp_path): killed(kind, 5, [k], tmp_path)

@few(0, 2)
@pytest.mark.parametrize('n', [3, 5, 7, 10])
@pytest.mark.parametrize('kind', KINDS)
def test_resumes_at_any_batch(kind, n, tmp_path):
    "A run killed at any batch resumes exactly, with a checkpoint at every batch or every second batch"
    killed(kind, n, [*range(1, 3*n, 1 if n<7 else 2)] if kind not in ('workers','persistent') else [n+1], tmp_path)

def test_stateful_data_is_not_read_again(tmp_path):
    "A stateful dataset continues at its position and reads no sample again"
    made = []
    class Counted(Stateful):
        def __iter__(self):
            for o in super().__iter__(): made.append(1); yield o
    mk = lambda: DataLoader(Counted(), BS)
    run(mk(), 5, tmp_path, die=9, every='1ba')
    made.clear()
    run(mk(), 5, tmp_path, every='1ba', resume='auto')
    assert len(made)==6*BS

def test_a_checkpoint_does_not_change_the_batches(tmp_path):
    _,a = run(KINDS['shuffled'](), 5)
    _,b = run(KINDS['shuffled'](), 5, tmp_path, every='3ba')
    assert same(a, b)

def test_each_sample_is_seen_equally_often():
    _,seen = run(DataLoader(Noisy(), BS, shuffle=True), 5, epochs=7)
    numbers_seen = torch.cat([b[1] for b in flat(seen)]).mul(N).round().int().flatten()
    assert numbers_seen.bincount().tolist()==[5]*N

def test_a_fit_begins_at_the_first_batch():
    learn,seen = run(KINDS['listed'](), 3, epochs=1)
    cb = Seen()
    with learn.no_logging(): learn.fit(1, cbs=cb)
    assert torch.equal(flat(cb.seen)[0][0], flat(seen)[0][0])

@pytest.mark.parametrize('exc', [CancelTrain, CancelEpoch, CancelBatch])
@pytest.mark.parametrize('kind', ['listed'])
def test_cancelled_epochs_continue(kind, exc):
    "After a cancel, training continues with the next batch"
    cb = at('before_pred', throw(exc()), lambda self: self.learn.training and self.learn.iter==2)
    got = []
    see = at('after_fetch', lambda self: got.append(self.learn.batch) if self.learn.training else None)
    run(KINDS[kind](), 5, cbs=[cb, see])
    want = passes(KINDS[kind](), len(got))   # passes over a list draw no random numbers
    assert len(got)==(15 if exc is CancelBatch else 9)
    for a,b in zip(got, want, strict=True): assert all(map(torch.equal, a, b))

@pytest.mark.parametrize('fit', [lambda l,*cbs: l.fit_one_cycle(3, .1, cbs=cbs), lambda l,*cbs: l.fit('15ba', cbs=cbs), lambda l,*cbs: l.fit('13ba', cbs=cbs),
                                 lambda l,*cbs: l.fit_flat_cos(3, .1, cbs=cbs)])
def test_the_length_of_the_fit_is_known(fit):
    "Schedules, fractions such as `'0.2dur'` and amounts of batches use the length of the virtual epochs"
    fired,pcts = [],[]
    learn = learner(Own())
    with learn.no_logging():
        fit(learn, StepsPerEpoch(5), EveryCallback(lambda l: fired.append(l.train_iter), '0.2dur'), at('before_batch', lambda cb: pcts.append(cb.learn.pct_train), lambda cb: cb.learn.training))
    n = learn.train_iter
    assert n in (13, 15) and len(learn.recorder.history)==3 and len(fired)==5
    assert pcts==pytest.approx([i/n for i in range(n)])

def test_a_warmup_counts_virtual_epochs():
    "A warm-up of 8 batches fits into an epoch of 15, though a pass over the data has 7"
    learn = learner(KINDS['listed']())
    with learn.no_logging(): learn.fit(1, cbs=[StepsPerEpoch(15), ParamScheduler(warmup_lin(.1, '8ba'))])
    assert learn.train_iter==15

def test_sample_indices():
    "The indices of each batch are right, also across the end of a pass"
    got = []
    dl = KINDS['shuffled']()
    _,seen = run(dl, 5, cbs=[ItemIndices(), at('after_batch', lambda cb: got.append(cb.learn.indices), lambda cb: cb.learn.training)])
    assert [torch.tensor(i) for i in got] and all(torch.equal(b[1].mul(N).round().int().flatten(), torch.tensor(i, dtype=torch.int32)) for b,i in zip(flat(seen), got, strict=True))
    _,seen = run(KINDS['endless'](), 5, cbs=[ItemIndices(), at('after_batch', lambda cb: got.append(cb.learn.indices), lambda cb: cb.learn.training)])
    assert all(torch.equal(b[1].mul(N).round().int().flatten(), torch.tensor(i, dtype=torch.int32)) for b,i in zip(flat(seen), got[15:], strict=True))

@pytest.mark.parametrize('n', [2, 3])
def test_data_that_is_exhausted(n):
    "Data that can be iterated only once: the fit warns and ends, and validates the last, shorter epoch too"
    class Once:
        def __init__(self): self.it = iter(KINDS['listed']()[:6 if n==3 else 7])
        def __iter__(self): return self.it
    with pytest.warns(UserWarning, match='exhausted'): learn,seen = run(Once(), n, epochs=9)
    assert len(seen)==(6 if n==3 else 7) and len(learn.recorder.history)==(2 if n==3 else 4)

def test_no_batch_at_all():
    with pytest.raises(ValueError, match='yielded no batch'): run([], 3)

def test_a_cancel_in_a_generator_raises():
    "A `CancelBatch` inside a generator raises a RuntimeError: the rest of the pass would be lost in silence"
    class Bad:
        def __iter__(self):
            for i,b in enumerate(KINDS['listed']()):
                if i==3: raise CancelBatch
                yield b
    with pytest.raises(RuntimeError, match='lost'): run(Bad(), 5)

def test_prefetch():
    "Prefetch without a thread changes nothing; with a thread, which would fetch ahead of the epoch, it raises"
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        _,a = run(KINDS['shuffled'](), 5, cbs=[Prefetch()])
    assert same(a, run(KINDS['shuffled'](), 5)[1])
    with pytest.raises(ValueError, match='StepsPerEpoch'): run(KINDS['shuffled'](), 5, cbs=[Prefetch(thread=True)])

def test_limit():
    "After an epoch cut by LimitBatches, the next one continues with the next batch"
    _,seen = run(KINDS['listed'](), 5, cbs=[LimitBatches(2)])
    assert [round(b[0][0,0].item()*9) for b in flat(seen)]==[*range(6)]

def test_another_loader_raises():
    def swap(cb): cb.learn.dls.loaders[0] = KINDS['listed']()
    with pytest.raises(ValueError, match='was replaced during the fit'): run(KINDS['listed'](), 3, cbs=[at('after_epoch', swap)])

# fits that continue in the data, a feature request to Lightning (#11426)

def numbers():
    i = 0
    while True: yield torch.full((2,4), i/100), torch.ones(2,1); i += 1

def batch_numbers(learn, *args, **kw):
    "The numbers of the training batches of a fit"
    seen,die = [],kw.pop('die', None)
    def note(cb):
        if cb.learn.training: seen.append(round(100*cb.learn.xb[0][0,0].item()))
        if cb.learn.training and len(seen)==die: raise SystemError('the power failed')
    cbs = [Callback(before_batch=note), *kw.pop('cbs', ())]
    with learn.no_logging():
        if die is None: learn.fit(*args, cbs=cbs, **kw)
        else:
            with pytest.raises(SystemError): learn.fit(*args, cbs=cbs, **kw)
    return seen

def test_the_next_fit_continues():
    learn = learner(numbers, cbs=StepsPerEpoch(3, across_fits=True))
    assert batch_numbers(learn, 2)==[*range(6)] and batch_numbers(learn, '4ba')==[6,7,8,9]
    copied = copy.deepcopy(learn)
    assert batch_numbers(learn, 1)==[10,11,12] and batch_numbers(copied, 1)==[0,1,2]
    learn.dls = DataLoaders([b for b,_ in zip(numbers(), range(2))])
    assert batch_numbers(learn, 1)==[0,1,0] and batch_numbers(learn, 1)==[1,0,1]   # other data begins at its first batch

def test_a_fit_that_continued_is_resumed(tmp_path):
    def cbs(): return [CheckpointCallback('1ba', folder=tmp_path)]
    learn,other = (learner(numbers, cbs=StepsPerEpoch(3, across_fits=True)) for _ in range(2))
    batch_numbers(learn, 1)
    assert batch_numbers(learn, 2, cbs=cbs(), die=5)==[3,4,5,6,7]
    assert batch_numbers(other, 2, cbs=cbs(), resume='auto')==[7,8] and batch_numbers(other, 1)==[9,10,11]
