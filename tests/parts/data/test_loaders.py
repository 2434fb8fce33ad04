"Loaders: their length, copies of them, and their items in order, against brute-force oracles"
import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, settings, strategies as st
from torch import tensor
from torch.utils.data import *

from toys import draws, few
from learnkit.data.loaders import FuncLoader, set_epoch
from learnkit.loop.loop import loader_len
from learnkit.data.loaders import *
from learnkit.data.nested import nested_reorder
from loader_cases import Custom, Items, NewStyle, SizedStream, Stream

fast = draws(50)

class Knows(Dataset):
    "A dataset and its sampler, which refer to each other"
    def __init__(self): self.sampler = KnowsData(self)
    def __len__(self): return 4
    def __getitem__(self, i): return i
class KnowsData(Sampler):
    def __init__(self, dataset): self.dataset,self.epochs = dataset,[]
    def __iter__(self): return iter(range(4))
class Counts(KnowsData):
    def set_epoch(self, epoch): self.epochs.append(epoch)

def test_parts_that_refer_to_each_other():
    "`set_epoch` recursed without end"
    ds = Knows()
    set_epoch(DataLoader(ds, 2, sampler=ds.sampler), 1)
    ds.sampler = Counts(ds)
    set_epoch(DataLoader(ds, 2, sampler=ds.sampler), 3)
    assert {*ds.sampler.epochs}=={3}

def test_loader_len():
    class Lazy:
        def __iter__(self): return iter([1])
        def __len__(self): raise NotImplementedError
    class Bare(Lazy):
        def __len__(self): raise TypeError
    class Bug(Lazy):
        def __len__(self): return len(None)
    class Bug2(Lazy):
        def __len__(self): return self.a
    class Bug3(Lazy):
        def __len__(self): return 'a'+1
    known = [([1,2],2), (DataLoader(Items(7),3),3), (DataLoader(Items(7),3,drop_last=True),2), (DataLoader(SizedStream(7),3),3)]
    for dl,n in known: assert loader_len(dl)==n
    for dl in (FuncLoader(list), iter([1]), Lazy(), Bare(), Stream(3), DataLoader(Stream(3)), DataLoader(Items(3), sampler=Custom([1])),
               DataLoader(ChainDataset([Stream(2)])), DataLoader(Items(3), batch_sampler=Custom([[1]]))): assert loader_len(dl) is None
    for dl,e in ((Bug(),TypeError), (Bug2(),AttributeError), (Bug3(),TypeError)): pytest.raises(e, loader_len, dl)

# copy_loader
def first(b): return b
def start(i): pass

@st.composite
def loader_args(draw):
    "Arguments of a `DataLoader` of 7 items, each drawn"
    n,g = draw(st.sampled_from([0,2])),torch.Generator()
    kw = dict(dataset=Items(7), num_workers=n, generator=g, in_order=draw(st.booleans()), pin_memory=draw(st.booleans()))
    if draw(st.booleans()): kw['collate_fn'] = first
    if draw(st.booleans()): kw['worker_init_fn'] = start
    if n: kw.update(persistent_workers=draw(st.booleans()), prefetch_factor=draw(st.integers(1,5)), timeout=draw(st.sampled_from([0,9.])),
                    multiprocessing_context=draw(st.sampled_from([None,'spawn','fork'])))
    how,bs,drop = draw(st.sampled_from('plain shuffle sampler batches own unbatched unbatched_sampler stream'.split())),draw(st.integers(1,4)),draw(st.booleans())
    kw.update(dict(plain=dict(batch_size=bs, drop_last=drop), shuffle=dict(batch_size=bs, drop_last=drop, shuffle=True), unbatched=dict(batch_size=None),
        sampler=dict(batch_size=bs, drop_last=drop, sampler=Custom([3,1])), batches=dict(batch_sampler=BatchSampler(SequentialSampler(range(7)), bs, drop)),
        own=dict(batch_sampler=Custom([[3],[1,2]])), unbatched_sampler=dict(batch_size=None, sampler=Custom([3,1])),
        stream=dict(dataset=Stream(7), batch_size=bs, drop_last=drop))[how])
    return kw

def attributes(dl):
    "All that a `DataLoader` holds; a sampler that it made of its arguments stands for these"
    res = {k.removeprefix('_DataLoader'):v for k,v in vars(dl).items() if k not in ('_iterator','_IterableDataset_len_called')}
    if dl.batch_size is not None: b = res.pop('batch_sampler'); res['batches'] = type(b),b.batch_size,b.drop_last,b.sampler is dl.sampler
    if isinstance(dl.dataset, IterableDataset) or (dl.batch_size is None and dl.batch_sampler is not None): res['sampler'] = type(dl.sampler)
    return res

@pytest.mark.filterwarnings('ignore')
@fast
@given(loader_args())
def test_copy_keeps_every_attribute(kw):
    dl = DataLoader(**kw)
    assert attributes(copy_loader(dl))==attributes(dl)
    for k in kw.keys() & {'dataset','generator','collate_fn','worker_init_fn','sampler','batch_sampler'}: assert getattr(copy_loader(dl), k) is kw[k]

changes = dict(num_workers=3, generator=torch.Generator(), in_order=False, pin_memory=True, collate_fn=list, worker_init_fn=print, prefetch_factor=7, timeout=4.,
               multiprocessing_context='forkserver', persistent_workers=True, dataset=Items(7))
@pytest.mark.filterwarnings('ignore')
@fast
@given(loader_args(), st.sets(st.sampled_from([*changes])))
def test_copy_changes_nothing_else(kw, ks):
    "What is changed is as given, the rest as it was"
    if 'dataset' in ks and isinstance(kw['dataset'], Stream): ks.remove('dataset')
    if ks & {'prefetch_factor','timeout','multiprocessing_context','persistent_workers'}: ks.add('num_workers')
    new = {k:changes[k] for k in ks}
    want,got = attributes(DataLoader(**{**kw, **new})),attributes(copy_loader(DataLoader(**kw), **new))
    if 'sampler' not in kw:   # one that the loader made goes on reading the data set of before, which has the same indices
        for o in (want, got): o['sampler'] = type(o['sampler'])
    for o in (want, got): o['_multiprocessing_context'] = type(o.get('_multiprocessing_context'))
    assert got==want

@fast
@given(loader_args(), st.sampled_from([dict(shuffle=True), dict(shuffle=False), dict(sampler=[5,0,6]), dict(batch_size=5), dict(drop_last=True), dict(batch_size=None),
                                       dict(batch_sampler=[[1,2,3],[4]]), dict(batch_size=2, shuffle=True, drop_last=True)]))
@pytest.mark.filterwarnings('ignore')
def test_copy_with_other_batches(kw, new):
    "As a loader made anew, with the sampler of before where that stays"
    dl,inner = DataLoader(**kw),kw.get('batch_sampler')
    if isinstance(kw['dataset'], Stream): new = {k:v for k,v in new.items() if k in ('batch_size','drop_last')}
    if isinstance(inner, BatchSampler): kw = {**kw, 'sampler':inner.sampler, 'batch_size':inner.batch_size, 'drop_last':inner.drop_last}
    elif inner is not None and 'batch_size' in new: kw = {**kw, 'sampler':SequentialSampler(range(7))}
    elif inner is not None and new and 'batch_sampler' not in new:
        with pytest.raises(ValueError, match='batch sampler of its own, a Custom'): copy_loader(dl, **new)
        return
    if new: kw.pop('batch_sampler', None)
    if 'batch_sampler' in new: kw = {k:v for k,v in kw.items() if k not in ('batch_size','sampler','drop_last','shuffle')}
    if 'sampler' in new or 'shuffle' in new: kw.pop('sampler', None); kw.pop('shuffle', None)
    if new.get('batch_size', 1) is None: kw.pop('drop_last', None)
    if kw.get('batch_size', 1) is None and new.get('drop_last') and 'batch_size' not in new: return
    got,want = copy_loader(dl, **new),DataLoader(**{**kw, **new})
    for k in ('batch_size','drop_last','collate_fn'): assert getattr(got, k)==getattr(want, k), k
    assert type(got.sampler) is type(want.sampler) and type(got.batch_sampler) is type(want.batch_sampler)
    if not isinstance(got.sampler, RandomSampler) and not isinstance(kw['dataset'], Stream):
        for a in ('sampler','batch_sampler'):
            if getattr(want, a) is not None: assert [*getattr(got, a)]==[*getattr(want, a)]

def test_copy_without_workers():
    "A loader whose workers have a time limit and a start method of their own can be read in this process"
    dl = DataLoader(Items(7), 3, num_workers=2, timeout=9, prefetch_factor=3, persistent_workers=True, multiprocessing_context='spawn')
    assert [len(b[0]) for b in copy_loader(dl, num_workers=0)]==[3,3,1]
    assert copy_loader(copy_loader(dl, num_workers=0), num_workers=1).prefetch_factor==2

def read(dl): return [o for b in dl for o in zip(b[0].reshape(-1).tolist(), [b[1]] if isinstance(b[1], str) else b[1])]

def check(dl, want, chosen_by_torch, workers=0):
    "Everything in `want` (with repeats) comes once, in order after `argsort`, twice in a row"
    dl2,idxs = sequential_loader(dl)
    assert (idxs is None)==chosen_by_torch and (idxs is None or all(type(i) is int for i in idxs))
    for _ in range(2 if not workers else 1):
        got = read(dl2)
        assert all(s==f'item {i}' for i,s in got)
        res = tensor([i for i,_ in got])
        if idxs is not None:
            assert res.tolist()==idxs
            res = nested_reorder(res, tensor(idxs).argsort())
        if want is not None: assert res.tolist()==sorted(want)
        else: assert res.tolist()==sorted(res.tolist()) and len(res)==len(dl.sampler)
    if isinstance(dl2, DataLoader): assert dl2.num_workers==workers and dl2.collate_fn is dl.collate_fn
    return dl2,idxs

def indices(n): return st.lists(st.integers(0,n-1), min_size=1, max_size=20)

kinds = '''plain shuffle num_samples replacement weighted subset custom distributed np batches batches_tensor BatchSampler
    BatchSampler_custom none none_shuffle none_custom none_batches none_BatchSampler none_BatchSampler_custom subset_ds'''.split()

@st.composite
def loaders(draw, kind, workers=0):
    "A loader, the items that belong to it (`None`: any), and whether PyTorch chose the order"
    n,bs,drop = draw(st.integers(1,15)), draw(st.integers(1,6)), draw(st.booleans())
    ds,idxs,kw = Items(n), draw(indices(n)), dict(num_workers=workers)
    auto = dict(batch_size=bs, drop_last=drop, **kw)
    chunks = [idxs[i:i+bs] for i in range(0, len(idxs), bs)]
    everything = list(range(n))
    k = draw(st.integers(1, 20))
    return dict(
        plain     = lambda: (DataLoader(ds, **auto), everything, True),
        shuffle   = lambda: (DataLoader(ds, shuffle=True, **auto), everything, True),
        num_samples = lambda: (DataLoader(ds, sampler=RandomSampler(ds, num_samples=k), **auto), everything, True),
        replacement = lambda: (DataLoader(ds, sampler=RandomSampler(ds, replacement=True, num_samples=k), **auto), None, False),
        weighted  = lambda: (DataLoader(ds, sampler=WeightedRandomSampler(torch.rand(n)+.1, k), **auto), None, False),
        subset    = lambda: (DataLoader(ds, sampler=SubsetRandomSampler(idxs), **auto), idxs, False),
        custom    = lambda: (DataLoader(ds, sampler=Custom(idxs), **auto), idxs, False),
        np        = lambda: (DataLoader(ds, sampler=Custom(np.array(idxs)), **auto), idxs, False),
        distributed = lambda: (DataLoader(ds, sampler=DistributedSampler(ds, 2, 0), **auto), None, False),
        batches   = lambda: (DataLoader(ds, batch_sampler=Custom(chunks), **kw), idxs, False),
        batches_tensor = lambda: (DataLoader(ds, batch_sampler=Custom([tensor(c) for c in chunks]), **kw), idxs, False),
        BatchSampler = lambda: (DataLoader(ds, batch_sampler=BatchSampler(RandomSampler(ds), bs, drop), **kw), everything, True),
        BatchSampler_custom = lambda: (DataLoader(ds, batch_sampler=BatchSampler(Custom(idxs), bs, drop), **kw), idxs, False),
        none      = lambda: (DataLoader(ds, batch_size=None, **kw), everything, True),
        none_shuffle = lambda: (DataLoader(ds, batch_size=None, shuffle=True, **kw), everything, True),
        none_custom = lambda: (DataLoader(ds, batch_size=None, sampler=Custom(idxs), **kw), idxs, True),
        none_batches = lambda: (DataLoader(Many(n), batch_size=None, sampler=Custom(chunks), **kw), idxs, False),
        none_BatchSampler = lambda: (DataLoader(Many(n), batch_size=None, sampler=BatchSampler(RandomSampler(ds), bs, drop), **kw), everything, True),
        none_BatchSampler_custom = lambda: (DataLoader(Many(n), batch_size=None, sampler=BatchSampler(Custom(idxs), bs, drop), **kw), idxs, False),
        subset_ds = lambda: (DataLoader(Subset(Renamed(n), idxs), shuffle=True, **auto), range(len(idxs)), True),
    )[kind]()

class Many(Items):
    "A data set that takes a list of indices"
    def __getitem__(self, idxs): return tensor(list(idxs)), [f'item {i}' for i in idxs]

class Renamed(Items):
    "Each item says which position it is *read* at, in the subset above it"
    def __init__(self, n): super().__init__(n); self.k = 0
    def __getitem__(self, i):
        i = self.k; self.k += 1
        return tensor(i), f'item {i}'
    def __getitems__(self, idxs): return [self[i] for i in idxs]

@pytest.mark.parametrize('kind', kinds)
@given(data=st.data())
@draws(15)
def test_sequential(kind, data):
    dl,want,torchs = data.draw(loaders(kind))
    if kind!='subset_ds': check(dl, want, torchs)
    else: assert [i for i,_ in read(sequential_loader(dl)[0])]==list(want)

@few(5)
@pytest.mark.parametrize('kind', [k for k in kinds if k!='subset_ds'])
@given(data=st.data())
@settings(max_examples=1, deadline=None, derandomize=True)
def test_sequential_workers(kind, data): check(*data.draw(loaders(kind, workers=2)), workers=2)

@fast
@given(st.integers(1,15), st.integers(1,5), st.booleans(), st.sampled_from([Stream, SizedStream]))
def test_sequential_stream(n, bs, drop, cls):
    dl = DataLoader(cls(n), batch_size=bs, drop_last=drop)
    dl2,idxs = sequential_loader(dl)
    assert idxs is None and torch.cat(list(dl2)).tolist()==list(range(n)) and (drop or dl2 is dl)

@pytest.mark.parametrize('drop', [False, True])
def test_sequential_stream_workers(drop):
    dl2,idxs = sequential_loader(DataLoader(Stream(9), batch_size=2, drop_last=drop, num_workers=2, in_order=False))
    assert idxs is None and dl2.in_order and sorted(torch.cat(list(dl2)).tolist())==list(range(9))

def test_sequential_sampler_iterated_once():
    s = Custom([3,1,2])
    dl2,idxs = sequential_loader(DataLoader(Items(4), batch_size=2, sampler=s))
    for _ in range(3): assert [i for i,_ in read(dl2)]==idxs==[3,1,2]
    assert s.asked==1

def test_sequential_keys():
    "Keys that are no numbers: all of them come, in the order of the sampler"
    ds = {'a':1, 'b':2}
    dl2,idxs = sequential_loader(DataLoader(ds, batch_size=1, sampler=['b','a']))
    assert torch.cat(list(dl2)).tolist()==[2,1] and idxs is None
    dl2,idxs = sequential_loader(DataLoader(ds, batch_size=None, sampler=['b','a']))
    assert list(dl2)==[2,1] and idxs is None

def test_sequential_keeps_settings():
    collate,init,g = (lambda b: default_collate(b)), (lambda i: None), torch.Generator()
    dl = DataLoader(Items(9), 4, shuffle=True, drop_last=True, num_workers=2, collate_fn=collate, worker_init_fn=init, generator=g, timeout=30,
                    prefetch_factor=3, persistent_workers=True, multiprocessing_context='fork', in_order=False)
    dl2,_ = sequential_loader(dl)
    for nm in 'dataset batch_size num_workers collate_fn worker_init_fn generator timeout prefetch_factor pin_memory'.split():
        assert getattr(dl2, nm)==getattr(dl, nm)
    assert dl2.multiprocessing_context.get_start_method()=='fork' and dl2.in_order and not dl2.persistent_workers
    assert dl.drop_last and type(dl.sampler) is RandomSampler
    dl = DataLoader(Items(9), 4, num_workers=2, in_order=False)
    assert sequential_loader(dl)[0].in_order

def test_sequential_leaves_alone_what_is_in_order():
    for dl in (DataLoader(Items(3), 2), [1,2], L([1,2]), FuncLoader(list), DataLoader(Stream(3), 2)): assert sequential_loader(dl)==(dl, None)

def test_sequential_own_iter():
    "A subclass that reads in its own way is not replaced by a plain `DataLoader`"
    class Twice(DataLoader):
        def __iter__(self): return (b*2 for b in super().__iter__())
    dl = Twice(range(4), 2, shuffle=True)
    assert sequential_loader(dl)==(dl, None)

def test_sequential_new():
    dl2,idxs = sequential_loader(NewStyle(7, True, True))
    assert list(dl2)==list(range(7)) and idxs is None
    class Sorted(NewStyle):
        def get_idxs(self): return list(torch.randperm(self.n).tolist())
    dl2,idxs = sequential_loader(Sorted(7, True))
    assert list(dl2)==list(dl2)==idxs and sorted(idxs)==list(range(7))
    class Endless(NewStyle):
        def get_idxs(self): raise AssertionError
        def __iter__(self): return iter([1])
    for n,ix in ((None,True),(3,False)):
        dl = Endless(n, False); Endless.indexed = ix
        assert list(sequential_loader(dl)[0])==[1] and sequential_loader(dl)[1] is None
