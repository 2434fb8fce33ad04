"Batches: their size, their precision, their shapes as text, and the split into inputs and targets"
from collections import OrderedDict, UserDict, namedtuple

import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, strategies as st
from torch import nn, tensor

from learnkit.data.batch import *
from learnkit.data.batch import select_samples
from learnkit.data.device import to_device
from learnkit.data.nested import item_find
from toys import draws

fast = draws(50)

def test_find():
    x = torch.ones(3,2)
    assert find_bs(x)==find_bs([x])==find_bs({'a':None,'b':x})==find_bs((tensor(1),x))==find_bs(L([x,x]))==3
    assert find_bs(((),x))==3 and item_find([[x]]) is x and find_device([]) is None
    p = nn.utils.rnn.pack_sequence([torch.ones(4), torch.ones(2)])
    # of a packed sequence within a batch, the number of all steps was returned
    assert find_bs(dict(x=p))==find_bs((tensor(1),p))==find_bs([dict(a=tensor(1), x=[p]), x])==2 and find_device(dict(x=p))==p.data.device
    assert find_bs(p)==find_bs((p,x))==2
    for b in (), [], {}, 'ab', None, ('a',): pytest.raises(ValueError, find_bs, b)

def test_precision():
    b = {'x':torch.ones(2, dtype=torch.float64), 'y':tensor([1]), 'z':torch.ones(1, dtype=torch.bfloat16), 'n':'a'}
    assert [o.dtype for o in list(to_float(b).values())[:3]]==[torch.float32, torch.int64, torch.float32]
    assert [o.dtype for o in list(to_half(b).values())[:3]]==[torch.float16, torch.int64, torch.float16]
    n = to_np(b)
    assert n['x'].dtype==np.float64 and n['z'].dtype==np.float32 and n['n']=='a'
    assert to_np(torch.ones(1, requires_grad=True)*2)==2

def test_flatten_check():
    a,b = flatten_check(torch.ones(2,3).t(), torch.zeros(6))
    assert a.shape==b.shape==(6,)
    with pytest.raises(ValueError, match=r'\[2, 3\] and \[2\]'): flatten_check(torch.ones(2,3), torch.ones(2))

x,y,z = torch.randn(3,2), torch.arange(3), torch.ones(3)
Pair = namedtuple('Pair', 'a b')
def same(a, b): return len(a)==len(b) and all(u is v for u,v in zip(a,b))

@fast
@given(st.lists(st.sampled_from([x,y,z]), min_size=1, max_size=5), st.sampled_from([tuple, list, L]), st.none()|st.integers(1,5))
def test_split_lists(ts, cls, n_inp):
    b = cls(ts)
    if n_inp and n_inp>len(ts):
        with pytest.raises(ValueError, match=f'takes {n_inp} inputs .* has {len(ts)} elements'): split_batch(b, n_inp)
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
        with pytest.raises(ValueError, match=f'takes {n_inp} inputs'): split_batch(b, n_inp)
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
    with pytest.raises(TypeError, match='is a string'): split_batch(['a','b'])

_jagged = lambda **kw: torch.nested.nested_tensor([torch.ones(2,4), torch.ones(3,4)], **kw)

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('make,message,table', [
    (lambda: torch.ones(2,3), 'float32[2, 3]', '2 x 3'), (lambda: tensor(True), 'bool[]', '1 number'), (lambda: torch.ones(0), 'float32[0]', '0'),
    (lambda: nn.Parameter(torch.ones(2)), 'float32[2]', '2'), (lambda: nn.LazyLinear(3).weight, 'UninitializedParameter', 'UninitializedParameter'),
    (lambda: torch.eye(5).to_sparse(), 'sparse_coo float32[5, 5]', '5 x 5'), (lambda: torch.eye(5).to_sparse_csr(), 'sparse_csr float32[5, 5]', '5 x 5'),
    (_jagged, 'nested float32[2, *, *]', '2 x * x *'), (lambda: _jagged(layout=torch.jagged), 'nested float32[2, *, 4]', '2 x * x 4'),
    (lambda: nn.utils.rnn.pack_sequence([torch.ones(4,2), torch.ones(2,2)]), 'PackedSequence(float32[6, 2])', 'PackedSequence(6 x 2)'),
    (lambda: np.zeros((3,4), np.int8), 'ndarray int8[3, 4]', '3 x 4'), (lambda: None, 'None', 'None'), (lambda: 'abc', 'str', 'str'), (lambda: 3, 'int', 'int'),
    (lambda: [], '()', '()'), (lambda: {}, '{}', '{}'), (lambda: ([x], {'a':UserDict(b=z), 'n':None}), '((float32[3, 2]), {a: {b: float32[3]}, n: None})', '((3 x 2), {a: {b: 3}, n: None})'),
    (lambda: Pair(x, L(z)), '(float32[3, 2], (float32[3]))', '(3 x 2, (3))'), (lambda: ['a']*8, f'({", ".join(["str"]*8)})', f'({", ".join(["str"]*8)})'),
    (lambda: ('a', 1, *[z]*7), '(str, int, float32[3], … 9 in all)', '(str, int, 3, … 9 in all)')])
def test_shapes(make, message, table):
    "Text for messages and tables, of whatever a batch or an output may hold"
    assert (shapes(make()), shapes(make(), dtype=False))==(message, table)

def test_samples_are_selected_or_raise():
    "Lists of lists, tuples, tensors of the batch in a list; what has two meanings raises an error, and all samples change nothing"
    x,im = torch.arange(6.).view(3, 2),[torch.full((3, 4), float(i)) for i in range(3)]
    same = lambda a, b: str(a)==str(b)
    assert same(select_samples([x, x], [2], 3), [x[2:]]*2) and same(select_samples([x[:2], x[:2]], [1], 2), [x[1:2]]*2)
    assert same(select_samples((x, [['a'], ['b', 'c'], ['d']]), [0, 2], 3), (x[[0, 2]], [['a'], ['d']]))
    assert same(select_samples((x, torch.zeros(7), tensor(1)), [0], 3), (x[:1], torch.zeros(7), tensor(1)))
    assert same(select_samples((x, (im[:2], [x])), [0], 3), (x[:1], ([t[:1] for t in im[:2]], [x[:1]])))
    assert same(select_samples([dict(a=x), dict(a=x), dict(a=x)], [0], 3), [dict(a=x)])
    a = np.arange(3)   # an array was kept whole, also with a value for each sample
    assert same(select_samples(dict(x=x, a=a, w=np.ones(5), n=np.array(3)), [2], 3), dict(x=x[2:], a=a[2:], w=np.ones(5), n=np.array(3)))
    assert same(select_samples((x, [a[:1], a[:2], a]), slice(1, 3), 3), (x[1:], [a[:2], a]))
    for unclear in ((im, x), (tuple(im), [{}]*3), (x, (dict(a=x),)*3), (x, [['a', 'b', 'c']]*3)):
        with pytest.raises(ValueError, match='may have one entry per sample'): select_samples(unclear, [0], 3)
        assert select_samples(unclear, [0, 1, 2], 3) is unclear
    with pytest.raises(ValueError, match='PackedSequence'): select_samples((torch.nn.utils.rnn.pack_sequence([*x]), x), [0], 3)
