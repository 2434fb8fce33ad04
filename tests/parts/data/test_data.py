"`DataLoaders` from loaders, data sets, tensors and arrays"
import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, strategies as st
from torch import tensor
from torch.utils.data import *

from learnkit.data.batch import split_batch
from learnkit.data.loaders import *
from learnkit.data.arrays import BatchTensorDataset, collate_tensors
from learnkit.data.loaders import sequential_loader
from learnkit.data.random import set_seed
from loader_cases import Custom, Items, NewStyle, Stream
from toys import draws

fast = draws(50)
x,y,z = torch.randn(3,2), torch.arange(3), torch.ones(3)

def test_plain_loaders():
    for train in ([(x,y)], ((x,y),), L([(x,y)]), DataLoader(Items(3)), Stream(3), DataLoader(Stream(3)), NewStyle(3, True)):
        dls = DataLoaders(train)
        assert dls.train is train and dls.valid is None and dls.valid_ds is None and len(dls)==1 and list(dls)==[train]
    dls = DataLoaders([x], None, [z], n_inp=2, path='a/b', device='cpu')
    assert dls.valid is None and dls[2]==[z] and dls.n_inp==2 and str(dls.path)=='a/b' and dls.device==torch.device('cpu')
    with pytest.raises(IndexError): dls[3]
    assert dls.to(None) is dls and dls.device is None

def test_assigned_loaders():
    dls = DataLoaders([x])
    dls.train,dls.valid = [y],lambda: [z]
    assert dls.train==dls[0]==[y] and list(dls.valid)==[z] and len(dls)==2
    dls.valid = None
    assert dls.valid is None and len(dls)==2
    for name in ('train','valid'):
        with pytest.raises(TypeError, match='must be an iterable of batches'): setattr(dls, name, 'abc')

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
    (Items(3), 'Items is a dataset, .*from_dsets'), (TensorDataset(x), 'is a dataset'), ('a.csv', 'a str'), (b'a', 'a bytes'),
    (None, 'NoneType'), ({'a':x}, 'a dict'), (x, 'Tensor; .*from_tensors'), (np.ones(3), 'ndarray; .*from_tensors'),
    ((i for i in range(3)), 'generator can be read only once'), (zip([1],[2]), 'zip can be read only once'), (map(str,[1]), 'map can be'),
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
    with pytest.raises(TypeError, match='Rows is a dataset'): DataLoaders(Rows())

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
    ([], ValueError, 'training dataset is empty'), (Items(0), ValueError, 'is empty'), ('abc', TypeError, 'is a str'), (None, TypeError, 'NoneType'),
    (DataLoader(Items(2)), TypeError, 'is a DataLoader; pass loaders as'), (iter([1]), TypeError, 'list_iterator'), (3, TypeError, 'is a int')])
def test_bad_dsets(ds, err, msg):
    with pytest.raises(err, match=msg): DataLoaders.from_dsets(ds)
    if ds is not None:
        with pytest.raises(err, match=msg.replace('training','validation')): DataLoaders.from_dsets(Items(3), ds)

@pytest.mark.parametrize('bs', [0, -1, 1.5, '64'])
def test_bad_bs(bs):
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_dsets(Items(3), bs=bs)
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_dsets(Items(3), Items(3), val_bs=bs)
    with pytest.raises(ValueError, match='batch size'): DataLoaders.from_tensors(x, y, bs=bs)

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
    a,b = [DataLoaders.from_tensors(torch.arange(50), seed=s).valid_ds.tensors[0].tolist() for s in (3, np.int64(3))]
    assert a==b

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
    ((x,y[1:]), {}, ValueError, r'\[3, 2\]'), (((x,y),), {}, TypeError, 'one by one'), ((x,), dict(valid_pct=0), ValueError, 'more than 0 and less than 1, not 0'),
    ((x,), dict(valid_pct=1.), ValueError, 'less than 1, not 1.0'), ((x,), dict(valid_pct=20), ValueError, 'not 20'), ((x[:0],), {}, ValueError, 'there is none'),
    ((x[:1],), {}, ValueError, 'there is 1'), ((np.array([{},1], dtype=object),), {}, TypeError, 'Array 0 must hold numbers, .* object'),
    ((x,np.array(['a','b','c'])), {}, TypeError, 'Array 1 must hold numbers'), ((np.array(['2020'], dtype='M8[D]'),), {}, TypeError, 'numbers'),
    ((tensor(1),), {}, ValueError, 'must have a dimension'), ((np.float64(1),), {}, ValueError, 'must have a dimension'), (('abc',), {}, TypeError, 'numbers'),
    ((None,), {}, TypeError, 'numbers'), ((x, np.ma.masked_array([1,2,3], [0,1,0])), {}, ValueError, r'Array 1 has masked values.*a\.filled')])
def test_bad_tensors(args, kw, err, msg):
    with pytest.raises(err, match=msg): DataLoaders.from_tensors(*args, **kw)

@pytest.mark.parametrize('workers', [0,2])
def test_rows_like_any_dataset(workers):
    "`BatchTensorDataset` gives the same batches whoever collates, in a `Subset` and in workers"
    a,b = torch.randn(7,2), torch.arange(7)
    plain = [tuple(o) for o in DataLoader(TensorDataset(a,b), 3)]
    for kw in (dict(collate_fn=collate_tensors), {}, dict(collate_fn=lambda rs: default_collate([(u,v) for u,v in rs]))):
        got = [tuple(o) for o in DataLoader(BatchTensorDataset(a,b), 3, num_workers=workers, **kw)]
        assert all(torch.equal(u,v) for p,q in zip(plain, got, strict=True) for u,v in zip(p, q, strict=True))
    got = next(iter(DataLoader(Subset(BatchTensorDataset(a,b), [2,5]), 2, num_workers=workers)))
    assert torch.equal(got[0], a[[2,5]])
    assert len(BatchTensorDataset(a,b))==7 and torch.equal(BatchTensorDataset(a,b)[3][0], a[3])

def test_sequential_of_from_tensors():
    dls = DataLoaders.from_tensors(torch.arange(20), seed=1, bs=6, drop_last=True, num_workers=2)
    dl,idxs = sequential_loader(dls.train)
    assert idxs is None and torch.equal(torch.cat([b[0] for b in dl]), dls.train_ds.tensors[0])
