"Loaders: every kind of batch, sampler and data set against brute-force oracles"
from collections import OrderedDict, UserDict, namedtuple

import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, settings, strategies as st
from torch import tensor
from torch.utils.data import *

from learnkit.device import to_device
from learnkit.nested import nested_reorder
from learnkit.seed import set_seed
from learnkit.data import *
from learnkit.data import FuncLoader, TensorRows, whole_batch

torch.set_num_threads(1)
fast = settings(max_examples=100, deadline=None)

class Items(Dataset):
    "Item `i` is `i`, as tensor and as text, so that what comes out says where it came from"
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return tensor(range(self.n)[i]), f'item {i}'

class Stream(IterableDataset):
    "Items 0…n-1, shared out among the workers"
    def __init__(self, n): self.n = n
    def __iter__(self):
        w = get_worker_info()
        return iter(range(w.id if w else 0, self.n, w.num_workers if w else 1))

class SizedStream(Stream):
    def __len__(self): return self.n

class Custom(Sampler):
    "A sampler without a length, that counts how often it is asked"
    def __init__(self, idxs): self.idxs,self.asked = idxs,0
    def __iter__(self): self.asked += 1; return iter(self.idxs)

# ---------------------------------------------------------------- split_batch
x,y,z = torch.randn(3,2), torch.arange(3), torch.ones(3)
Pair = namedtuple('Pair', 'a b')

def same(a, b): return len(a)==len(b) and all(u is v for u,v in zip(a,b))

@fast
@given(st.lists(st.sampled_from([x,y,z]), min_size=1, max_size=5), st.sampled_from([tuple, list, L]), st.none()|st.integers(1,5))
def test_split_lists(ts, cls, n_inp):
    b = cls(ts)
    if n_inp and n_inp>len(ts):
        with pytest.raises(ValueError, match=f'wants {n_inp} inputs .* has {len(ts)} elements'): split_batch(b, n_inp)
        return
    k = n_inp if n_inp else 1 if len(ts)==1 else len(ts)-1
    xb,yb = split_batch(b, n_inp)
    assert type(xb) is tuple and type(yb) is tuple and same(xb, ts[:k]) and same(yb, ts[k:])

targs = ['labels','label','targets','target','y']
@fast
@given(st.lists(st.sampled_from(targs+['a','b','c']), min_size=1, unique=True), st.sampled_from([dict, OrderedDict, UserDict]),
       st.none()|st.integers(1,8))
def test_split_mappings(keys, cls, n_inp):
    b = cls((k, torch.randn(2)) for k in keys)
    if n_inp and n_inp>len(keys):
        with pytest.raises(ValueError, match=f'wants {n_inp} inputs'): split_batch(b, n_inp)
        return
    found = keys[n_inp:] if n_inp else [k for k in keys if k in targs]
    if not n_inp and len(found)!=1: found = []
    xb,yb = split_batch(b, n_inp)
    assert type(xb) is tuple and len(xb)==1 and type(xb[0]) is Inputs and type(yb) is tuple
    assert list(xb[0])==[k for k in keys if k not in found] and all(xb[0][k] is b[k] for k in xb[0])
    assert same(yb, [b[k] for k in found]) and xb[0].targ_names==tuple(found)
    assert set(xb[0].with_targs(yb))==set(keys) and xb[0].with_targs(tuple(t+1 for t in yb)).keys()==b.keys()
    moved = to_device(xb, 'meta')[0]
    assert type(moved) is Inputs and moved.targ_names==xb[0].targ_names

def test_split_others():
    assert same(split_batch(x)[0], (x,)) and split_batch(x)[1]==()
    xb,yb = split_batch(Pair(x,y))
    assert type(xb) is type(yb) is tuple and same(xb+yb, (x,y))
    for b in ('ab', b'ab', None, 3, np.ones(3), {1,2}, object()):
        with pytest.raises(TypeError, match=f'not a {type(b).__name__}'): split_batch(b)
    for b in ((), [], {}): pytest.raises(ValueError, split_batch, b)
    with pytest.raises(TypeError, match='begins with a string'): split_batch(['a','b'])

# ---------------------------------------------------------------- loader_len
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

# ---------------------------------------------------------------- in_order
def read(dl): return [o for b in dl for o in zip(b[0].reshape(-1).tolist(), [b[1]] if isinstance(b[1], str) else b[1])]

def check(dl, want, chosen_by_torch, workers=0):
    "Everything in `want` (with repeats) comes once, in order after `argsort`, twice in a row"
    dl2,idxs = in_order(dl)
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
@settings(max_examples=25, deadline=None)
def test_in_order(kind, data):
    dl,want,torchs = data.draw(loaders(kind))
    if kind!='subset_ds': check(dl, want, torchs)
    else: assert [i for i,_ in read(in_order(dl)[0])]==list(want)

@pytest.mark.parametrize('kind', [k for k in kinds if k!='subset_ds'])
@given(data=st.data())
@settings(max_examples=1, deadline=None, derandomize=True)
def test_in_order_workers(kind, data): check(*data.draw(loaders(kind, workers=2)), workers=2)

@fast
@given(st.integers(1,15), st.integers(1,5), st.booleans(), st.sampled_from([Stream, SizedStream]))
def test_in_order_stream(n, bs, drop, cls):
    dl = DataLoader(cls(n), batch_size=bs, drop_last=drop)
    dl2,idxs = in_order(dl)
    assert idxs is None and torch.cat(list(dl2)).tolist()==list(range(n)) and (drop or dl2 is dl)

@pytest.mark.parametrize('drop', [False, True])
def test_in_order_stream_workers(drop):
    dl2,idxs = in_order(DataLoader(Stream(9), batch_size=2, drop_last=drop, num_workers=2, in_order=False))
    assert idxs is None and dl2.in_order and sorted(torch.cat(list(dl2)).tolist())==list(range(9))

def test_in_order_sampler_asked_once():
    s = Custom([3,1,2])
    dl2,idxs = in_order(DataLoader(Items(4), batch_size=2, sampler=s))
    for _ in range(3): assert [i for i,_ in read(dl2)]==idxs==[3,1,2]
    assert s.asked==1

def test_in_order_keys():
    "Keys that are no numbers: all of them come, in the order of the sampler"
    ds = {'a':1, 'b':2}
    dl2,idxs = in_order(DataLoader(ds, batch_size=1, sampler=['b','a']))
    assert torch.cat(list(dl2)).tolist()==[2,1] and idxs is None
    dl2,idxs = in_order(DataLoader(ds, batch_size=None, sampler=['b','a']))
    assert list(dl2)==[2,1] and idxs is None

def test_in_order_keeps_settings():
    collate,init,g = (lambda b: default_collate(b)), (lambda i: None), torch.Generator()
    dl = DataLoader(Items(9), 4, shuffle=True, drop_last=True, num_workers=2, collate_fn=collate, worker_init_fn=init, generator=g, timeout=30,
                    prefetch_factor=3, persistent_workers=True, multiprocessing_context='fork', in_order=False)
    dl2,_ = in_order(dl)
    for nm in 'dataset batch_size num_workers collate_fn worker_init_fn generator timeout prefetch_factor pin_memory'.split():
        assert getattr(dl2, nm)==getattr(dl, nm)
    assert dl2.multiprocessing_context.get_start_method()=='fork' and dl2.in_order and not dl2.persistent_workers
    assert dl.drop_last and type(dl.sampler) is RandomSampler
    dl = DataLoader(Items(9), 4, num_workers=2, in_order=False)
    assert in_order(dl)[0].in_order

def test_in_order_leaves_alone_what_is_in_order():
    for dl in (DataLoader(Items(3), 2), [1,2], L([1,2]), FuncLoader(list), DataLoader(Stream(3), 2)): assert in_order(dl)==(dl, None)

def test_in_order_own_iter():
    "A subclass that reads in its own way is not replaced by a plain `DataLoader`"
    class Twice(DataLoader):
        def __iter__(self): return (b*2 for b in super().__iter__())
    dl = Twice(range(4), 2, shuffle=True)
    assert in_order(dl)==(dl, None)

class NewStyle:
    "Like fastai's loaders"
    indexed,drop_last = True,True
    def __init__(self, n, shuffle, drop_last=False, get_idxs=None):
        self.n,self.shuffle,self.drop_last = n,shuffle,drop_last
        if get_idxs: self.get_idxs = get_idxs
    def get_idxs(self): return torch.randperm(self.n).tolist() if self.shuffle else list(range(self.n))
    def new(self, **kw): return type(self)(**{**dict(n=self.n, shuffle=self.shuffle, drop_last=self.drop_last), **kw})
    def __iter__(self): return iter(self.get_idxs()[:self.n//2*2 if self.drop_last else None])

def test_in_order_new():
    dl2,idxs = in_order(NewStyle(7, True, True))
    assert list(dl2)==list(range(7)) and idxs is None
    class Sorted(NewStyle):
        def get_idxs(self): return list(torch.randperm(self.n).tolist())
    dl2,idxs = in_order(Sorted(7, True))
    assert list(dl2)==list(dl2)==idxs and sorted(idxs)==list(range(7))
    class Endless(NewStyle):
        def get_idxs(self): raise AssertionError
        def __iter__(self): return iter([1])
    for n,ix in ((None,True),(3,False)):
        dl = Endless(n, False); Endless.indexed = ix
        assert list(in_order(dl)[0])==[1] and in_order(dl)[1] is None

# ---------------------------------------------------------------- DataLoaders
def test_plain_loaders():
    for train in ([(x,y)], ((x,y),), L([(x,y)]), DataLoader(Items(3)), Stream(3), DataLoader(Stream(3)), NewStyle(3, True)):
        dls = DataLoaders(train)
        assert dls.train is train and dls.valid is None and dls.valid_ds is None and len(dls)==1 and list(dls)==[train]
    dls = DataLoaders([x], None, [z], n_inp=2, path='a/b', device='cpu')
    assert dls.valid is None and dls[2]==[z] and dls.n_inp==2 and str(dls.path)=='a/b' and dls.device==torch.device('cpu')
    with pytest.raises(IndexError): dls[3]
    assert dls.to(None) is dls and dls.device is None

def test_from_function():
    dls = DataLoaders(lambda: (tensor(i) for i in range(3)), lambda: [x])
    for _ in range(2): assert [int(o) for o in dls.train]==[0,1,2] and list(dls.valid)==[x]
    class Loader:
        def __iter__(self): return iter([x])
        def __call__(self): raise AssertionError
    assert DataLoaders(Loader()).one_batch() is x
    class Indexed:
        def __getitem__(self, i): return [x][i]
    assert DataLoaders(Indexed()).one_batch() is x

@pytest.mark.parametrize('dl,msg', [
    (Items(3), 'Items is a data set, .*from_dsets'), (TensorDataset(x), 'is a data set'), ('a.csv', 'a str'), (b'a', 'a bytes'),
    (None, 'NoneType'), ({'a':x}, 'a dict'), (x, 'Tensor; .*from_tensors'), (np.ones(3), 'ndarray; .*from_tensors'),
    ((i for i in range(3)), 'generator can be read once'), (zip([1],[2]), 'zip can be read once'), (map(str,[1]), 'map can be'),
    (3, 'int cannot be iterated'), (object(), 'object cannot be iterated')])
def test_bad_loaders(dl, msg):
    with pytest.raises(TypeError, match=f'The training loader must be an iterable of batches, but .*{msg}') as e: DataLoaders(dl)
    assert str(e.value).count('. ')==0 and '\n' not in str(e.value)
    if dl is not None:
        with pytest.raises(TypeError, match='The validation loader'): DataLoaders([x], dl)
        with pytest.raises(TypeError, match='The 2-th loader'): DataLoaders([x], None, dl)

def test_dataset_of_another_kind():
    "A data set that is no `torch.utils.data.Dataset`, such as those of Hugging Face, is known by its `__getitems__`"
    class Rows:
        def __iter__(self): return iter([{'x':1}])
        def __getitems__(self, idxs): return [{'x':1}]
    with pytest.raises(TypeError, match='Rows is a data set'): DataLoaders(Rows())

def test_bad_arguments():
    pytest.raises(TypeError, DataLoaders); pytest.raises(TypeError, DataLoaders.from_dsets); pytest.raises(TypeError, DataLoaders.from_tensors)
    for n in (0, -1, 1.5, 'a'):
        with pytest.raises(ValueError, match='n_inp'): DataLoaders([x], n_inp=n)
    with pytest.raises(ValueError, match='empty'): DataLoaders(DataLoader(Items(3), 4, drop_last=True)).one_batch()

def test_vocab_and_n_inp():
    ds = Items(3); assert DataLoaders(DataLoader(ds)).vocab is None
    ds.classes = ['a','b']; assert DataLoaders(DataLoader(ds)).vocab==['a','b']
    ds.vocab = ['c']; assert DataLoaders(DataLoader(ds)).vocab==['c'] and DataLoaders(DataLoader(ds), vocab=['d']).vocab==['d']
    dl = NewStyle(3, True); dl.n_inp = 2
    assert DataLoaders(dl).n_inp==2 and DataLoaders(dl, n_inp=1).n_inp==1

def test_one_batch():
    assert DataLoaders([(x,{'y':y})]).one_batch()[0] is x
    b = DataLoaders([(x,{'y':y})], device='meta').one_batch()
    assert b[0].device.type==b[1]['y'].device.type=='meta'

# ---------------------------------------------------------------- from_dsets
def test_from_dsets():
    dls = DataLoaders.from_dsets(Items(10), Items(5), Items(3), bs=4, val_bs=2, drop_last=True, collate_fn=default_collate)
    assert [dl.batch_size for dl in dls]==[4,2,2] and [dl.drop_last for dl in dls]==[True,False,False]
    assert [type(dl.sampler) for dl in dls]==[RandomSampler,SequentialSampler,SequentialSampler]
    assert all(dl.collate_fn is default_collate for dl in dls) and dls.train_ds.n==10 and dls.valid_ds.n==5
    assert type(DataLoaders.from_dsets(Items(3), shuffle=False).train.sampler) is SequentialSampler
    s = Custom([1]); dls = DataLoaders.from_dsets(Items(3), Items(2), sampler=s)
    assert dls.train.sampler is s and type(dls.valid.sampler) is SequentialSampler
    dls = DataLoaders.from_dsets(Items(3), Items(2), batch_sampler=Custom([[2],[0,1]]))
    assert [b[0].tolist() for b in dls.train]==[[2],[0,1]] and dls.valid.batch_size==64
    dls = DataLoaders.from_dsets(Stream(5), Stream(3), bs=2)
    assert torch.cat(list(dls.train)).tolist()==list(range(5)) and dls.valid.batch_size==2
    assert DataLoaders.from_dsets(Items(3), None).valid is None
    assert [len(b) for b in DataLoaders.from_dsets([x,x], bs=None).train]==[3,3]
    dls = DataLoaders.from_dsets(Items(3), n_inp=1, device='cpu', path='p', vocab='ab')
    assert (dls.n_inp, dls.device.type, str(dls.path), dls.vocab)==(1,'cpu','p','ab')

def test_dataset_of_dicts():
    ds = [dict(x=torch.randn(2), y=i, name=f'n{i}') for i in range(4)]
    (inp,),(t,) = split_batch(next(iter(DataLoaders.from_dsets(ds, bs=4, shuffle=False).train)))
    assert inp['x'].shape==(4,2) and inp['name']==['n0','n1','n2','n3'] and t.tolist()==[0,1,2,3]

@pytest.mark.parametrize('ds,err,msg', [
    ([], ValueError, 'training data set is empty'), (Items(0), ValueError, 'is empty'), ('abc', TypeError, 'is a str'), (None, TypeError, 'NoneType'),
    (DataLoader(Items(2)), TypeError, 'is a DataLoader; give loaders as'), (iter([1]), TypeError, 'list_iterator'), (3, TypeError, 'is a int')])
def test_bad_dsets(ds, err, msg):
    with pytest.raises(err, match=msg): DataLoaders.from_dsets(ds)
    if ds is not None:
        with pytest.raises(err, match=msg.replace('training','validation')): DataLoaders.from_dsets(Items(3), ds)

@pytest.mark.parametrize('bs', [0, -1, 1.5, '64'])
def test_bad_bs(bs):
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_dsets(Items(3), bs=bs)
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_dsets(Items(3), Items(3), val_bs=bs)
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_tensors(x, y, bs=bs)

# ---------------------------------------------------------------- from_tensors
@fast
@given(st.integers(2,60), st.floats(.001,.999), st.none()|st.integers(0,2**63-1), st.integers(1,3))
def test_from_tensors(n, pct, seed, k):
    arrays = [torch.arange(n)+1000*i for i in range(k)]
    set_seed(n); before = torch.get_rng_state()
    dls = DataLoaders.from_tensors(*arrays, valid_pct=pct, seed=seed, bs=7)
    assert torch.equal(torch.get_rng_state(), before)
    train,valid = dls.train_ds.tensors,dls.valid_ds.tensors
    for i in range(k): assert torch.equal(torch.cat([train[i],valid[i]]).sort().values, arrays[i])     # disjoint and complete
    for ts in (train,valid): assert all(torch.equal(t, ts[0]+1000*i) for i,t in enumerate(ts))         # rows stay together
    assert len(valid[0])==min(max(round(n*pct),1),n-1) and torch.equal(valid[0], valid[0].sort().values)
    set_seed(n); torch.rand(3) # an advanced generator changes nothing
    again = DataLoaders.from_tensors(*arrays, valid_pct=pct, seed=seed)
    assert torch.equal(again.valid_ds.tensors[0], valid[0])
    for dl,ts in ((dls.train,train),(dls.valid,valid)):
        bs = list(dl)
        assert all(type(b) is tuple and len(b)==k for b in bs) and [len(b[0]) for b in bs[:-1]]==[7]*(len(bs)-1)
        assert torch.equal(torch.cat([b[-1] for b in bs]).sort().values, ts[-1])

def test_seeds_differ():
    splits = {tuple(DataLoaders.from_tensors(torch.arange(50), seed=s).valid_ds.tensors[0].tolist()) for s in range(10)}
    assert len(splits)==10

@pytest.mark.parametrize('dtype,inp,targ', [
    ('float64',torch.float32,torch.float32), ('float32',torch.float32,torch.float32), ('float16',torch.float16,torch.float16),
    ('>f8',torch.float32,torch.float32), ('>f4',torch.float32,torch.float32), ('>i2',torch.int64,torch.int64),
    ('uint8',torch.uint8,torch.int64), ('int8',torch.int64,torch.int64), ('int32',torch.int64,torch.int64), ('uint16',torch.int64,torch.int64),
    ('uint32',torch.int64,torch.int64), ('int64',torch.int64,torch.int64), ('bool',torch.bool,torch.bool), ('complex64',torch.complex64,torch.complex64)])
def test_numpy_types(dtype, inp, targ):
    a = (np.arange(10)%2).astype(dtype)
    ts = DataLoaders.from_tensors(a, a, seed=1, valid_pct=.5).train_ds.tensors
    assert [t.dtype for t in ts]==[inp,targ] and torch.equal(ts[0].to(torch.complex64), ts[1].to(torch.complex64))
    assert DataLoaders.from_tensors(a, a, n_inp=2).train_ds.tensors[1].dtype==inp
    assert DataLoaders.from_tensors(a, a, a, n_inp=1).train_ds.tensors[1].dtype==targ

def test_awkward_arrays(recwarn):
    a = np.arange(12.).reshape(4,3)
    ro = a.astype('float32'); ro.flags.writeable = False
    for b in (a[::-1], a.T[::-1].T, np.asfortranarray(a), ro, a[:,::2], np.ma.masked_array(a)):
        dls = DataLoaders.from_tensors(b, seed=1)
        got = torch.cat([dls.train_ds.tensors[0], dls.valid_ds.tensors[0]])
        assert got.sum()==np.asarray(b).sum() and got.dtype==torch.float32
    assert not recwarn
    class Frame:
        def __array__(self, dtype=None, copy=None): return a
    assert DataLoaders.from_tensors(Frame()).train_ds.tensors[0].shape==(3,3)
    t = torch.ones(4, dtype=torch.float64)
    assert DataLoaders.from_tensors(t).train_ds.tensors[0].dtype==torch.float64

@pytest.mark.parametrize('args,kw,err,msg', [
    ((x,y[1:]), {}, ValueError, r'\[3, 2\]'), (((x,y),), {}, TypeError, 'one by one'), ((x,), dict(valid_pct=0), ValueError, 'between 0 and 1, not 0'),
    ((x,), dict(valid_pct=1.), ValueError, 'between'), ((x,), dict(valid_pct=20), ValueError, 'not 20'), ((x[:0],), {}, ValueError, 'there is none'),
    ((x[:1],), {}, ValueError, 'there is 1'), ((np.array([{},1], dtype=object),), {}, TypeError, 'Array 0 must hold numbers, .* object'),
    ((x,np.array(['a','b','c'])), {}, TypeError, 'Array 1 must hold numbers'), ((np.array(['2020'], dtype='M8[D]'),), {}, TypeError, 'numbers'),
    ((tensor(1),), {}, ValueError, 'must have rows'), ((np.float64(1),), {}, ValueError, 'must have rows'), (('abc',), {}, TypeError, 'numbers'),
    ((None,), {}, TypeError, 'numbers')])
def test_bad_tensors(args, kw, err, msg):
    with pytest.raises(err, match=msg): DataLoaders.from_tensors(*args, **kw)

@pytest.mark.parametrize('workers', [0,2])
def test_rows_like_any_dataset(workers):
    "`TensorRows` gives the same batches whoever collates, in a `Subset` and in workers"
    a,b = torch.randn(7,2), torch.arange(7)
    plain = [tuple(o) for o in DataLoader(TensorDataset(a,b), 3)]
    for kw in (dict(collate_fn=whole_batch), {}, dict(collate_fn=lambda rs: default_collate([(u,v) for u,v in rs]))):
        got = [tuple(o) for o in DataLoader(TensorRows(a,b), 3, num_workers=workers, **kw)]
        assert all(torch.equal(u,v) for p,q in zip(plain, got, strict=True) for u,v in zip(p, q, strict=True))
    got = next(iter(DataLoader(Subset(TensorRows(a,b), [2,5]), 2, num_workers=workers)))
    assert torch.equal(got[0], a[[2,5]])
    assert len(TensorRows(a,b))==7 and torch.equal(TensorRows(a,b)[3][0], a[3])

def test_in_order_of_from_tensors():
    dls = DataLoaders.from_tensors(torch.arange(20), seed=1, bs=6, drop_last=True, num_workers=2)
    dl,idxs = in_order(dls.train)
    assert idxs is None and torch.equal(torch.cat([b[0] for b in dl]), dls.train_ds.tensors[0])
