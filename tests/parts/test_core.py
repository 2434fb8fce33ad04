"Nested batches, devices, random states: properties against simple oracles, and the cases that bite"
import io, json, random, sys, time
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, settings, strategies as st
from torch import nn, tensor

import learnkit.core as core
from learnkit.nested import *
from learnkit.batch import *
from learnkit.device import *
from learnkit.process import *
from learnkit.modules import *
from learnkit.seed import *

torch.set_num_threads(1)
fast = settings(max_examples=60, deadline=None)

Pair = namedtuple('Pair', 'a b')
N = 12

# An oracle that shares nothing with the library: a nested thing as a flat list of (path, leaf)
def paths(x, at=()):
    if isinstance(x, Mapping): return [o for k in x for o in paths(x[k], (*at, type(x), k))]
    if isinstance(x, (tuple,list)): return [o for i,v in enumerate(x) for o in paths(v, (*at, type(x), i))]
    return [(at, x)]

def same(a, b):
    a,b = paths(a),paths(b)
    assert [p for p,_ in a]==[p for p,_ in b]
    for (_,u),(_,v) in zip(a,b):
        assert type(u) is type(v)
        assert torch.equal(u,v) and u.dtype==v.dtype if isinstance(u, torch.Tensor) else u==v

def _grow(c):
    return st.one_of(
        st.lists(c, min_size=1, max_size=3).map(tuple),
        st.lists(c, min_size=1, max_size=3).filter(lambda l: not all(isinstance(o, Mapping) for o in l)),
        st.tuples(c, c).map(lambda o: Pair(*o)),
        st.dictionaries(st.sampled_from('xyz'), c, min_size=1, max_size=3),
        st.dictionaries(st.sampled_from('xyz'), c, min_size=1, max_size=3).map(OrderedDict),
        st.dictionaries(st.sampled_from('xyz'), c, min_size=1, max_size=3).map(lambda d: defaultdict(list, d)))

leaf = st.one_of(
    st.tuples(st.integers(0,2), st.sampled_from([torch.float32, torch.int64, torch.bool, torch.float16])).map(
        lambda o: (torch.arange(N*2**o[0]).reshape(N, *[2]*o[0]) % 7).to(o[1])),
    st.none())
nested = st.recursive(leaf, _grow, max_leaves=6)
cuts = st.lists(st.integers(1,N-1), max_size=4).map(lambda l: [0, *sorted(set(l)), N])

def rows(x, i, j): return core.apply(lambda t: t if t is None else t[i:j], x)

# ---------------------------------------------------------------- containers
@fast
@given(nested)
def test_apply_identity(x): same(core.apply(lambda o: o, x), x)

@fast
@given(nested)
def test_apply_all_leaves(x):
    seen = []
    res = core.apply(lambda o, k, m: seen.append(o) or (k,m), x, 1, m=2)
    assert all(a is b for a,(_,b) in zip(seen, paths(x))) and len(seen)==len(paths(x))
    flat = paths(res)
    assert len(flat)==2*len(seen)

@fast
@given(nested, cuts)
def test_concat_inverts_split(x, c): same(to_concat([rows(x,i,j) for i,j in zip(c, c[1:])]), x)

@fast
@given(nested, cuts)
def test_concat_other_dim(x, c):
    t = core.apply(lambda t: t if t is None else t[None], x)
    parts = [core.apply(lambda o: o if o is None else o[:,i:j], t) for i,j in zip(c, c[1:])]
    same(to_concat(parts, dim=1), t)
    same(to_concat([core.apply(lambda o: o if o is None else o.flatten(1)[...,i:j], t) for i,j in zip(c, c[1:])], dim=-1),
         core.apply(lambda o: o if o is None else o.flatten(1)[...,:N], t))

@fast
@given(nested, st.permutations(range(N)))
def test_reorder(x, perm):
    res = nested_reorder(x, perm)
    same(res, core.apply(lambda t: t if t is None else torch.stack([t[i] for i in perm]), x))
    same(nested_reorder(res, tensor(perm).argsort()), x)
    same(nested_reorder(x, L(perm)), res)

@fast
@given(st.lists(st.lists(st.text(max_size=2), min_size=1, max_size=4), min_size=1, max_size=4), st.booleans())
def test_concat_strings_per_item(cols, tup):
    "Strings, as the default collate function gives them, are one per item, whatever the lengths of the batches"
    bs = [(torch.arange(len(c)), tuple(c) if tup else c) for c in cols]
    t,s = to_concat(bs)
    assert type(s) is L and list(s)==sum(cols, [])
    perm = torch.randperm(len(s))
    t2,s2 = nested_reorder((t,s), perm)
    assert list(s2)==[s[i] for i in perm.tolist()] and torch.equal(t2, t[perm])

@fast
@given(st.lists(st.lists(st.integers(0,4), min_size=1, max_size=3), min_size=1, max_size=4))
def test_concat_detections(counts):
    "A list with a dict per image is joined image by image, also when all batches are equally long"
    bs = [[{'boxes':torch.full((n,4), 10.*i+j)} for j,n in enumerate(c)] for i,c in enumerate(counts)]
    res = to_concat(bs)
    assert type(res) is L and [len(o['boxes']) for o in res]==sum(counts, [])
    assert nested_reorder(res, range(len(res))[::-1])[0] is res[-1]

@fast
@given(st.lists(st.tuples(st.integers(1,3), st.integers(1,3)), min_size=1, max_size=5))
def test_concat_ragged(shapes):
    "Tensors that fit are a tensor, others an `L` of rows; never an error, never a loss"
    ts = [torch.full(s, float(i)) for i,s in enumerate(shapes)]
    res = to_concat(ts)
    if len({s[1] for s in shapes})==1: assert torch.equal(res, torch.cat(ts))
    else:
        assert type(res) is L
        for a,b in zip(res, [r for t in ts for r in t], strict=True): assert torch.equal(a,b)

def test_concat_wrapped_mapping():
    "A tuple is structure: the inputs `(dict,)` of several batches are one dict, and so are the strings `(strs,)`"
    res = to_concat([({'x':tensor([1])},), ({'x':tensor([2])},)])
    same(res, ({'x':tensor([1,2])},))
    assert to_concat([(('a','b'),), (('c','d'),)])==(L('a','b','c','d'),)

@fast
@given(st.lists(st.integers(0,3), min_size=2, max_size=4).filter(lambda l: len(set(l))>1))
def test_concat_lists_of_changing_length(lens):
    "What changes its length from batch to batch has one entry per item"
    bs = [[torch.full((2,), 10.*i+j) for j in range(n)] for i,n in enumerate(lens)]
    assert [float(t[0]) for t in to_concat(bs)]==[10.*i+j for i,n in enumerate(lens) for j in range(n)]

def test_concat_small():
    assert to_concat([])==[] and to_concat([(),()])==() and to_concat([None,None]) is None
    assert to_concat([None, tensor([1])])==L(None, tensor([1]))
    assert to_concat([Pair(0.5,3), Pair(0.25,4)])==Pair(L(0.5,0.25), L(3,4))
    assert to_concat([np.array([1,2]), np.array([3])])==L(1,2,3)
    assert torch.equal(to_concat([tensor(1), tensor([2,3])]), tensor([1,2,3]))
    assert to_concat([tensor([1.]), tensor([2])]).dtype==torch.float32

def test_concat_swallows_nothing(monkeypatch):
    def oom(*a, **k): raise torch.OutOfMemoryError('no memory')
    monkeypatch.setattr(torch, 'cat', oom)
    with pytest.raises(torch.OutOfMemoryError): to_concat([tensor([1]), tensor([2])])

def test_concat_different_keys():
    with pytest.raises(ValueError, match="one has .'a'. and another .'b'."): to_concat([{'a':1},{'b':1}])

class Out(OrderedDict):
    "Like the outputs of language models: a mapping that forbids `update`, and has attributes"
    def update(self, *a, **k): raise TypeError('no update')
    def __setitem__(self, k, v): super().__setitem__(k, v); self.__dict__[k] = v

class Enc(UserDict):
    "Like what a tokenizer gives: moves itself"
    def to(self, device): self.data = {k:v.to(device) for k,v in self.data.items()}; self.moved = device; return self

def test_odd_mappings():
    o = Out(); o['logits'] = torch.ones(2)
    res = core.apply(lambda t: t*2, o)
    assert type(res) is Out and torch.equal(res.logits, torch.full((2,), 2.)) and torch.equal(o.logits, torch.ones(2))
    assert type(to_concat([o,o])) is Out and len(to_concat([o,o])['logits'])==4
    assert core.apply(lambda i: i+1, MappingProxyType({'a':1}))=={'a':2}
    e = Enc(a=tensor([1])); d = core.apply(lambda t: t+1, e)
    assert type(d) is Enc and d['a'].item()==2 and e['a'].item()==1
    d = core.apply(lambda t: t+1, defaultdict(list, a=1)); assert d.default_factory is list

def test_listy_of_own_class():
    class MyTuple(tuple): pass
    assert type(core.apply(lambda o: o+1, MyTuple((1,2)))) is MyTuple
    assert core.apply(lambda o: o+1, L(1,2))==L(2,3) and type(core.apply(lambda o: o, L([1]))) is L
    m = torch.rand(3,2).max(0)
    res = core.apply(lambda o: o+1, m)
    assert type(res) is type(m) and torch.equal(res.indices, m.indices+1)
    p = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert type(to_detach(p)) is type(p)

def test_find():
    x = torch.ones(3,2)
    assert find_bs(x)==find_bs([x])==find_bs({'a':None,'b':x})==find_bs((tensor(1),x))==find_bs(L([x,x]))==3
    assert find_bs(((),x))==3 and item_find([[x]]) is x and find_device([]) is None
    p = nn.utils.rnn.pack_sequence([torch.ones(4), torch.ones(2)])
    assert find_bs(p)==find_bs((p,x))==2
    for b in (), [], {}, 'ab', None, ('a',): pytest.raises(ValueError, find_bs, b)

@fast
@given(st.lists(st.integers(), max_size=4))
def test_tuplify(xs):
    assert tuplify(xs)==tuplify(tuple(xs))==tuplify(L(xs))==tuplify(o for o in xs)==tuple(xs)
    assert detuplify(tuple(xs))==(None if not xs else xs[0] if len(xs)==1 else tuple(xs))

# ---------------------------------------------------------------- devices
@fast
@given(nested)
def test_to_device(x):
    m = to_device(x, 'meta')
    assert [(p, None if t is None else (t.shape, t.dtype)) for p,t in paths(x)]==\
           [(p, None if t is None else (t.shape, t.dtype)) for p,t in paths(m)]
    assert all(t is None or t.device.type=='meta' for _,t in paths(m))
    back = to_device(x, torch.device('cpu'))
    same(back, x)
    assert all(a is b for (_,a),(_,b) in zip(paths(back), paths(x)))

def test_to_device_in_place_is_free():
    x = torch.ones(2); p = nn.Parameter(x)
    for b in (x, p, (x,x), [x,p], ()): assert to_device(b, 'cpu') is b

def test_to_device_foreign():
    e = Enc(a=torch.ones(2))
    assert to_device((e, torch.ones(1)), 'meta')[0] is e and e['a'].device.type=='meta' and e.moved==torch.device('meta')
    p = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert type(to_cpu(p)) is type(p)
    mail = type('Mail', (), {'to':'me'})()
    assert to_device([mail, 'a', 3, None, torch.ones(1)], 'meta')[:4]==[mail, 'a', 3, None]

def test_default_device():
    assert default_device(False)==torch.device('cpu')
    if torch.accelerator.is_available(): assert default_device()==default_device(True)!=torch.device('cpu')
    else:
        assert default_device()==torch.device('cpu')
        with pytest.raises(RuntimeError, match='No accelerator'): default_device(True)

def test_precision():
    b = {'x':torch.ones(2, dtype=torch.float64), 'y':tensor([1]), 'z':torch.ones(1, dtype=torch.bfloat16), 'n':'a'}
    assert [o.dtype for o in list(to_float(b).values())[:3]]==[torch.float32, torch.int64, torch.float32]
    assert [o.dtype for o in list(to_half(b).values())[:3]]==[torch.float16, torch.int64, torch.float16]
    n = to_np(b)
    assert n['x'].dtype==np.float64 and n['z'].dtype==np.float32 and n['n']=='a'
    assert to_np(torch.ones(1, requires_grad=True)*2)==2

def test_to_detach():
    w = torch.ones(2, requires_grad=True)
    a,b = to_detach((w*2, [w, None, 'a']))
    assert not a.requires_grad and not b[0].requires_grad and b[1:]==[None,'a']

def test_alone_whatever_the_environment(monkeypatch):
    for k in 'RANK','WORLD_SIZE','LOCAL_RANK': monkeypatch.setenv(k, '3')
    assert (rank_distrib(), num_distrib())==(0,1)

def _gather(rank, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=2)
    assert (rank_distrib(), num_distrib())==(rank,2)
    x = torch.arange(3+rank*2)[:,None].expand(-1,2)+10*rank           # 3 rows, 5 rows
    out = to_detach({'x':x, 'y':(x[:,0]>1, tensor(float(rank)), x[:0]), 'n':'a'})
    assert torch.equal(out['x'], torch.cat([torch.arange(3), torch.arange(5)+10])[:,None].expand(-1,2))
    assert out['y'][0].dtype==torch.bool and out['y'][0].tolist()==[False,False,True]+[True]*5
    assert out['y'][1]==0.5 and out['y'][2].shape==(0,2) and out['n']=='a'
    assert to_detach(x, gather=False).shape==x.shape
    with pytest.raises(ValueError, match='agree after the first'): maybe_gather(torch.ones(2, 2+rank))
    assert maybe_gather(tensor(rank)).item()==0.5
    torch.distributed.destroy_process_group()

def test_gather_two_processes(tmp_path): \
    torch.multiprocessing.start_processes(_gather, (tmp_path/'init',), nprocs=2, start_method='fork')

def _first(rank, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=2)
    done = path.parent/'done'
    def download(): found = done.exists(); time.sleep(.2*(not rank)); done.touch(); return found
    assert rank0_first(download)==(rank==1)
    def fails(): 1/0
    with pytest.raises(ZeroDivisionError): rank0_first(fails)
    torch.distributed.destroy_process_group()

def test_rank0_first(tmp_path):
    "The second process finds what the first has left, and does not wait for ever if that fails"
    torch.multiprocessing.start_processes(_first, (tmp_path/'init',), nprocs=2, start_method='fork')
    assert rank0_first(divmod, 7, 2)==(3,1)

def test_flatten_check():
    a,b = flatten_check(torch.ones(2,3).t(), torch.zeros(6))
    assert a.shape==b.shape==(6,)
    with pytest.raises(ValueError, match=r'\[2, 3\] and \[2\]'): flatten_check(torch.ones(2,3), torch.ones(2))

# ---------------------------------------------------------------- random numbers
def draw(): return random.random(), random.gauss(0,1), float(np.random.rand()), float(np.random.randn()), torch.rand(1).item()

@fast
@given(st.integers(0, 2**63-1), st.integers(0,5))
def test_random_states(seed, skip):
    set_seed(seed)
    for _ in range(skip): draw()
    states = get_random_states()
    a = [draw() for _ in range(3)]
    set_random_states(**states)
    assert [draw() for _ in range(3)]==a
    set_seed(seed)
    for _ in range(skip): draw()
    assert [draw() for _ in range(3)]==a

def test_random_states_from_file():
    f,states = io.BytesIO(),get_random_states()
    torch.save(states, f); f.seek(0)
    a = draw()
    set_random_states(**torch.load(f, weights_only=True))
    assert draw()==a
    set_random_states(random_state=json.loads(json.dumps(states['random_state'])), numpy_state=json.loads(json.dumps(states['numpy_state'])))
    assert draw()[:4]==a[:4]

def test_other_bit_generator():
    old = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        s = get_random_states(); a = draw(); set_random_states(**s)
        assert draw()==a
    finally: np.random.set_bit_generator(old)

def test_without_numpy(monkeypatch):
    state = np.random.get_state()[1]
    monkeypatch.delitem(sys.modules, 'numpy')
    assert 'numpy_state' not in get_random_states()
    with no_random(): pass
    assert 'numpy' not in sys.modules
    assert (np.random.get_state()[1]==state).all()

@fast
@given(st.integers(0, 2**32), st.booleans())
def test_no_random(seed, fail):
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    set_seed(1); a = [draw(), draw()]
    set_seed(1); b = [draw()]
    try:
        with no_random(seed, reproducible=True):
            c = draw()
            if fail: raise KeyboardInterrupt
    except KeyboardInterrupt: pass
    b.append(draw())
    assert a==b and flags==(torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark)
    set_seed(seed)
    assert draw()==c

def test_no_random_bad_seed():
    s = get_random_states()
    with pytest.raises((TypeError, RuntimeError)):
        with no_random('a'): pass
    assert torch.equal(s['torch_state'], torch.get_rng_state()) and s['random_state']==random.getstate()

class FakeRNG:
    def __init__(self, n, one=False): self.s,self.one = [tensor([i], dtype=torch.uint8) for i in range(n)],one
    def device_count(self): return len(self.s)
    def get_rng_state_all(self): return [o.clone() for o in self.s]
    def get_rng_state(self): return self.s[0].clone()
    def set_rng_state(self, o, *i):
        assert len(i)==(0 if self.one else 1)
        self.s[i[0] if i else 0] = o

def test_devices(monkeypatch):
    "Every kind of device; a checkpoint of more devices than there are, or of other kinds, can be read"
    devs = dict(cuda=FakeRNG(2), xpu=FakeRNG(1), mps=FakeRNG(1, one=True))
    monkeypatch.setattr(core, '_device_rngs', lambda: devs)
    s = get_random_states()
    assert [len(s[f'torch_{n}_state']) for n in devs]==[2,1,1]
    for d in devs.values(): d.s = [o+7 for o in d.s]
    set_random_states(**s)
    assert [int(o) for d in devs.values() for o in d.s]==[0,1,0,0]
    devs.clear(); devs['cuda'] = FakeRNG(1)
    set_random_states(**{**s, 'torch_cuda_state':[tensor([5]), tensor([6])]})
    assert [int(o) for o in devs['cuda'].s]==[5]
    devs.clear(); set_random_states(**s)

@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_cuda():
    x = torch.ones(2, device='cuda'); b = (x,x)
    assert to_device(b, default_device()) is b and to_device((x,x.cpu()), 'cuda')[1].is_cuda and not to_detach(x).is_cuda
    set_seed(3); torch.rand(5, device='cuda')
    s = get_random_states(); a = torch.rand(3, device='cuda')
    with no_random(): torch.rand(9, device='cuda')
    b = torch.rand(3, device='cuda'); set_random_states(**s)
    assert torch.equal(torch.rand(3, device='cuda'), a) and torch.equal(torch.rand(3, device='cuda'), b)

# ---------------------------------------------------------------- models
def test_get_model():
    m = nn.Linear(2,2)
    c = torch.compile(m)
    for w in (m, c, nn.DataParallel(m), nn.DataParallel(c), torch.compile(nn.DataParallel(m))): assert get_model(w) is m
    f = lambda x: x
    assert get_model(f) is f

def test_params():
    m = nn.Sequential(nn.Linear(2,2), nn.ReLU())
    m[0].bias.requires_grad_(False)
    assert len(params(m))==2 and len(trainable_params(m))==1 and one_param(m) is m[0].weight
    assert one_param(nn.ReLU()) is None and not has_params(nn.ReLU())

class LlamaRMSNorm(nn.Module):
    def __init__(self): super().__init__(); self.weight = nn.Parameter(torch.ones(2))
class PreNorm(nn.Module):
    def __init__(self, fn): super().__init__(); self.norm,self.fn = nn.LayerNorm(2),fn
class NormLinear(nn.Linear): pass

def test_norm_bias_params():
    tied,tied2 = nn.Linear(2,2),nn.Linear(2,2)
    tied2.bias = tied.bias
    m = nn.Sequential(nn.BatchNorm2d(2), nn.GroupNorm(1,2), nn.RMSNorm(2), LlamaRMSNorm(), PreNorm(nn.Linear(2,2)), NormLinear(2,2),
                      nn.LSTM(2,2), nn.MultiheadAttention(2,1), tied, tied2, nn.SyncBatchNorm(2), nn.InstanceNorm1d(2, affine=True))
    nms = {id(p):n for n,p in m.named_parameters()}
    norms = ['0.weight','0.bias','1.weight','1.bias','2.weight','3.weight','4.norm.weight','4.norm.bias',
             '10.weight','10.bias','11.weight','11.bias']
    biases = ['4.fn.bias','5.bias','6.bias_ih_l0','6.bias_hh_l0','7.in_proj_bias','7.out_proj.bias','8.bias']
    assert [nms[id(p)] for p in norm_bias_params(m, with_bias=False)]==norms
    both = [nms[id(p)] for p in norm_bias_params(m)]
    assert sorted(both)==sorted(norms+biases) and len(set(both))==len(both)
    assert [nms[id(p)] for p in norm_bias_params(m[0])]==['0.weight','0.bias']

def test_flatten_model():
    class M(nn.Module):
        def __init__(self): super().__init__(); self.a,self.p,self.b = nn.Linear(1,1),nn.Parameter(torch.ones(1)),nn.Sequential(nn.ReLU())
    m = M(); fs = flatten_model(nn.Sequential(m, nn.Tanh()))
    assert [type(o).__name__ for o in fs]==['Linear','ReLU','ParameterModule','Tanh']
    assert {id(p) for f in fs for p in f.parameters()}=={id(p) for p in m.parameters()}
    assert flatten_model(m.a)==[m.a]
