"""Snapshots: what was noted is there again, whatever was done in between, as often as it is asked for"""
import gc, random, warnings
from collections import Counter, OrderedDict, defaultdict, deque
from copy import copy, deepcopy

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler, Subset, TensorDataset

from learnkit.data.loaders import as_loader
from learnkit.data.random import get_random_states
from learnkit.data.snapshot import snapshot_contents, snapshot_forward, snapshot_loader
from learnkit.data.snapshot import (Snapshot, snapshot_attributes, snapshot_buffers, snapshot_generator, snapshot_grads, snapshot_random,
                               snapshot_tensors)
from toys import at, batches, count_calls, learner

GENERATORS = dict(torch=lambda: torch.Generator().manual_seed(3), python=lambda: random.Random(3), numpy=lambda: np.random.default_rng(3))
def draw(g): return torch.rand(1, generator=g).item() if isinstance(g, torch.Generator) else g.random()

@pytest.mark.parametrize('kind', GENERATORS)
def test_generators(kind):
    "Also one that is replaced, and more than once"
    class Owner: pass
    o,make = Owner(),GENERATORS[kind]
    o.rng = g = make()
    draw(g)
    snapshot,expected = snapshot_contents(o),None
    for _ in range(3):
        got = [draw(g), draw(g)]
        o.rng = make()
        snapshot.restore()
        assert o.rng is g and (expected is None or got==expected)
        expected = got
    with snapshot_generator(g): again = draw(g)
    assert again==expected[0]==draw(g)

@pytest.mark.parametrize('o', [None, 3, [1], (i for i in range(3)), object(), type, np.arange(3)])
def test_what_has_no_generator(o):
    with snapshot_contents(o), snapshot_loader(o), snapshot_generator(o): pass

class Proxy:
    "A loader around another one, as those of `learnkit.feed` are"
    def __init__(self, dl): self.dl = dl
    def __iter__(self): return iter(self.dl)
    def __getattr__(self, k):
        if k=='dl': raise AttributeError(k)
        return getattr(self.dl, k)

def loaders():
    x = torch.arange(12.)
    ds = TensorDataset(x)
    def g(): return torch.Generator().manual_seed(1)
    yield DataLoader(ds, 4, shuffle=True, generator=g())
    yield DataLoader(ds, 4, sampler=RandomSampler(ds, generator=g()))
    yield DataLoader(ds, batch_sampler=BatchSampler(RandomSampler(ds, generator=g()), 4, False))
    yield DataLoader(ds, 4, generator=g())

@pytest.mark.parametrize('wrap', [lambda dl: dl, Proxy])
@pytest.mark.parametrize('i', range(4))
def test_loaders(i, wrap):
    dl = wrap([*loaders()][i])
    states = [o.get_state() for o in [getattr(dl, 'generator', None)] if o is not None]
    rng = get_random_states()
    with snapshot_loader(dl), snapshot_random(): first = [b for b, in dl]
    assert torch.equal(torch.get_rng_state(), rng['torch_state'])
    assert states==[] or torch.equal(dl.generator.get_state(), states[0])
    assert all(torch.equal(a, b) for a,(b,) in zip(first, dl, strict=True))

def test_tensors():
    "The same objects with the same values; what is no tensor is put back too, and a lazy one is left alone"
    t,lazy = torch.ones(2, requires_grad=True),nn.UninitializedBuffer()
    d = dict(t=t, none=None, n=3, lazy=lazy)
    with snapshot_tensors(d):
        t.data.zero_()
        d.update(t=torch.zeros(1), none=torch.ones(1), n=4)
    assert d['t'] is t and t.tolist()==[1,1] and t.requires_grad and d['none'] is None and d['n']==3 and d['lazy'] is lazy

def test_attributes():
    class Owner: shared = 1
    o = Owner()
    o.own = items = [1]
    snapshot = snapshot_attributes(o, 'own', 'shared', 'missing')
    for _ in range(2):
        o.own,o.shared,o.missing = [2],2,2
        snapshot.restore()
        assert vars(o)=={'own':items} and o.shared==1
    del o.own
    snapshot.restore()
    assert o.own is items

def test_buffers_and_modes():
    m = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(.5))
    m[1].eval()
    before,buffers,modes = deepcopy(m.state_dict()),[*m.buffers()],[o.training for o in m.modules()]
    with pytest.raises(KeyError), Snapshot(snapshot_buffers(m), snapshot_forward(m)):
        m.train()(torch.randn(4, 2))
        m[0].running_mean = torch.ones(2)
        raise KeyError
    assert all(torch.equal(v, before[k]) for k,v in m.state_dict().items())
    assert all(a is b for a,b in zip(m.buffers(), buffers, strict=True)) and [o.training for o in m.modules()]==modes

def test_grads():
    a,b = torch.ones(2, requires_grad=True),torch.ones(2, requires_grad=True)
    a.grad = g = torch.ones(2)
    aside,copied = snapshot_grads([a, b]),snapshot_grads([a, b], copy=True)
    for snapshot,same in ((aside, True), (copied, False)):
        a.grad = b.grad = torch.zeros(2)
        snapshot.restore()
        assert (a.grad is g)==same and a.grad.tolist()==[1,1] and b.grad is None
    a.grad += 1
    copied.restore()
    assert a.grad.tolist()==[1,1] and g.tolist()==[1,1]

def test_a_part_that_fails():
    "The others are restored; the error is raised, that of the block is its context"
    o = type('Owner', (), {})()
    o.x = 1
    def fails(): raise ValueError('cannot')
    def breaks(): raise KeyboardInterrupt
    with pytest.raises(ValueError, match='cannot') as e, Snapshot(snapshot_attributes(o, 'x'), breaks, Snapshot(Snapshot(), fails)):
        o.x = 2
        raise KeyError('block')
    assert o.x==1 and isinstance(e.value.__context__, KeyError) and 'KeyboardInterrupt' in e.value.__notes__[0]

def test_a_lazy_model():
    "A forward pass gives it its shape for good, so a trial is refused; `snapshot_forward` restores the rest"
    for m in (nn.LazyLinear(1), nn.LazyBatchNorm1d(affine=False)):
        with pytest.raises(ValueError, match='call the model once'), learner(model=m, opt_func=torch.optim.SGD).unchanged(): pass
    m = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d(), nn.Dropout(.5))
    rng = torch.get_rng_state()
    with snapshot_forward(m): m.eval()(torch.randn(3, 4))
    assert m.training and torch.equal(torch.get_rng_state(), rng)

@pytest.mark.parametrize('kind', 'bhiqfd')
def test_numbers_in_an_array_of_python(kind):
    "What Python's own `array` holds is put back into it: in a callback, and in the items of a data set, unless these are many"
    from array import array
    class Counts:
        def __init__(self, n): self.seen = array(kind, [0]*n)
        def __len__(self): return 4
        def __getitem__(self, i): return torch.tensor(float(i))
    o,ds,held = Counts(3),Counts(3),array(kind, [1,2])
    before = o.seen,ds.seen
    with snapshot_contents(o, [held], loaders=[DataLoader(ds)]):
        o.seen[1],ds.seen[2],held[0] = 7,8,9
        held.append(5); o.seen = array(kind)
    assert (o.seen is before[0] and ds.seen is before[1]) and [*o.seen]==[*ds.seen]==[0,0,0] and [*held]==[1,2]

@pytest.mark.parametrize('v', [np.zeros(3), np.array(0), np.zeros((2, 3), 'c8'), np.array(['a', None], object), np.zeros(2, [('a', int), ('b', 'U3')])], ids=lambda v: str(v.dtype))
def test_numbers_in_an_array_of_numpy(v):
    "NumPy arrays that are changed in place were not restored: in a callback, a dictionary, or a small one in a dataset"
    class Counts:
        def __init__(self, n): self.seen = np.zeros(n)
        def __len__(self): return 4
        def __getitem__(self, i): return torch.tensor(float(i))
    o,small,large,held = Counts(3),Counts(1000),Counts(1001),dict(a=v.copy())
    o.read_only = np.broadcast_to(v, (2, *v.shape))
    with snapshot_contents(o, held, loaders=[DataLoader(small), DataLoader(large)]):
        for c in (o, small, large): c.seen += 1
        held['a'][...] = v[::-1] if v.dtype.hasobject else 1
    assert not o.seen.any() and not small.seen.any() and large.seen.all() and np.array_equal(held['a'], v)

class Read:
    "Counts how often its items are read by its own methods, in an order of its own"
    read = 0
    def __iter__(self): self.read += 1; return iter(random.sample(of := [*super().__iter__()], len(of)))
    def __len__(self): self.read += 1; return super().__len__()
    def values(self): self.read += 1; return super().values()
    def items(self): self.read += 1; return super().items()

ITEMS = [(k, [i]) for i,k in enumerate('abcdefgh')]
KINDS = dict(list=(list, ITEMS), deque=(deque, ITEMS), tuple=(tuple, ITEMS), set=(set, 'abcdefgh'), dict=(dict, ITEMS), ordered=(OrderedDict, ITEMS),
             default=(defaultdict, list, ITEMS), counter=(Counter, 'abracadabra'))

@pytest.mark.parametrize('kind', KINDS)
def test_a_container_with_methods_of_its_own(kind):
    "Such as a list that is read shuffled, or a file at a time: it is looked into as Python's own, with its attributes"
    cls,*args = KINDS[kind]
    o = type('Own', (Read, cls), {})(*args)
    plain = lambda: cls(o) if kind=='set' else [*(cls.items(o) if issubclass(cls, dict) else cls.__iter__(o))]
    before,state = plain(),random.getstate()
    for look in snapshot_contents, snapshot_loader:
        o.read = 0
        with look(o):
            assert o.read==0
            if hasattr(cls, 'clear'): cls.clear(o)
            o.read,o.more = 5,1
        assert plain()==before and all(a is b for a,b in zip(plain(), before) if kind in ('list','deque','tuple'))
        assert vars(o)=={'read':0} and random.getstate()==state

def test_a_list_that_shuffles_is_read_once():
    "By a validation: nothing of it is read to take the snapshot"
    b = type('Shuffled', (Read, list), {})(batches(8))
    kept = [*list.__iter__(b)]
    learn = learner(dls=(batches(2), b))
    b.read = 0
    seen = []
    learn.validate(cbs=at('before_fetch', lambda cb: seen.append(b.read)))
    assert all(x is y for x,y in zip(list.__iter__(b), kept)) and b.read==0 and max(seen)<=4

# data at rest

def test_only_what_it_calls_itself_is_counted():
    "A limit of 20 calls more was passed by up to 64 beside other tests: the collector freed what these had left, and called Hypothesis"
    class Left:
        def __init__(self): self.me = self
        def __del__(self): pass
    def called(phase, info): pass
    def work(): return [[i] for i in range(5000)]   # so many objects that it collects garbage now and then
    work()
    alone = count_calls(work)
    gc.callbacks.append(called)
    try:
        for _ in range(100): Left()
        assert count_calls(work)==alone and gc.isenabled()
    finally: gc.callbacks.remove(called)

def calls_of(look, dl):
    "How many a second `learn.validate()`, or another look at `dl`, calls"
    learn = learner(dls=([(X,Y)], dl))
    learn.remove_cb(learn.progress)   # it draws again when some time went by
    getattr(learn, look)()
    return count_calls(getattr(learn, look))

class Held(Dataset):
    "Four items of what it holds"
    def __init__(self, held): self.held = held
    def __len__(self): return 4
    def __getitem__(self, i): return X[i],Y[i]

X,Y = torch.randn(4, 4),torch.randn(4, 1)
HELD = dict(numbers=lambda n: [*range(n)], texts=lambda n: tuple(map(str, range(n))), tensors=lambda n: [X]*n, arrays=lambda n: [np.zeros(2)]*n,
            pairs=lambda n: [(f'{i}.png',i) for i in range(n)], items=lambda n: [(X,Y)]*n, by_name=lambda n: {str(i):i for i in range(n)},
            set=lambda n: {*range(n)}, deque=lambda n: deque(range(n)))

@pytest.mark.parametrize('what', ['validate','get_preds'])
@pytest.mark.parametrize('kind', HELD)
def test_a_look_costs_the_same_however_much_the_data_hold(kind, what):
    "A list of a million items cost 0.12 s for each validation"
    few,more,many = (calls_of(what, DataLoader(Held(HELD[kind](n)), 4)) for n in (100, 1000, 10_000))
    assert max(few, more, many)-min(few, more, many)<=20   # a cache of Python's here or there

@pytest.mark.parametrize('look', ['validate','get_preds'])
@pytest.mark.parametrize('make', [lambda b: b, tuple, lambda b: lambda: iter(b), lambda b: DataLoader(b, None)])
def test_a_look_at_batches_costs_what_the_loop_costs(make, look):
    "A list of batches was looked into, 14 calls for each"
    loaders = [make([(X,Y)]*n) for n in (40, 200, 1200)]
    few,more,many = (calls_of(look, dl) for dl in loaders)
    by_hand = count_calls(lambda: [*as_loader(loaders[1], '')])/200
    a_batch = (more-few)/160
    assert a_batch-by_hand<=55 and many-more<=1000*a_batch+20

class Grows(Held):
    "Writes down what was read"
    def __getitem__(self, i): self.note(i); return super().__getitem__(i)

WAYS = dict(append=([], lambda o: o.held.append(0)), overwritten=([], lambda o: o.held.__setitem__(0, -1)), by_name=({}, lambda o: o.held.update(new=0)),
            set=(set(), lambda o: o.held.add('new')), deque=(deque(), lambda o: o.held.appendleft(0)))

@pytest.mark.parametrize('n', [100, 1001])
@pytest.mark.parametrize('way', WAYS)
def test_what_is_too_long_to_be_put_back_is_reported(way, n):
    kind,note = WAYS[way]
    ds = Grows(type(kind)({i:i for i in range(n)} if isinstance(kind, dict) else range(n)))
    ds.note = lambda i: note(ds)
    before = copy(ds.held)
    learn = learner(dls=([(X,Y)], DataLoader(ds, 4)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        learn.validate()
    assert (ds.held==before)==(n==100)
    assert [('of 1,001 entries, which is too long to be restored' in str(w.message)) for w in said]==[True]*(n>1000)

def test_a_loader_of_pytorch_is_known():
    "What may move in it is found all the same: in the function that makes batches, in samplers, and in data sets around others"
    g = {k:torch.Generator().manual_seed(i) for i,k in enumerate(('collate','sampler','within','own'))}
    def collate(items): return torch.stack([x for x,_ in items])+torch.rand(1, generator=g['collate']),torch.stack([y for _,y in items])
    class Noisy(Held):
        def __getitem__(self, i): return X[i]+torch.rand(1, generator=self.held),Y[i]
    ds = Subset(ConcatDataset([TensorDataset(X, Y), Noisy(g['within'])]), range(8))
    loaders = [DataLoader(ds, 4, sampler=RandomSampler(ds, generator=g['sampler']), collate_fn=collate),
               DataLoader(ds, batch_sampler=BatchSampler(RandomSampler(ds, generator=g['sampler']), 4, False)), DataLoader(ds, 4, shuffle=True, generator=g['own'])]
    for dl in loaders:
        states = [o.get_state() for o in g.values()]
        with snapshot_loader(dl), snapshot_random(): first = [b[0] for b in dl]
        assert all(torch.equal(o.get_state(), s) for o,s in zip(g.values(), states))
        with snapshot_random(): assert all(torch.equal(a, b[0]) for a,b in zip(first, dl))

def test_a_transform_among_many_items_is_found():
    "So many entries of its own are few of all: a kind that can keep something is not passed over"
    rng = np.random.default_rng(3)
    ds = Held([*range(500), [rng], lambda: rng])
    with snapshot_loader(DataLoader(ds)): a = rng.random()
    assert a==rng.random()
