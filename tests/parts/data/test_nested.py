"Nested data: properties against simple oracles, and the cases that bite"
from collections import OrderedDict, defaultdict
from types import MappingProxyType

import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, strategies as st
from torch import nn, tensor

from learnkit.data.nested import *
from learnkit.data.process import to_detach
from nested_cases import Enc, N, Pair, cuts, fast, nested, paths, rows, same

@fast
@given(nested)
def test_apply_identity(x): same(apply(lambda o: o, x), x)

@fast
@given(nested)
def test_apply_all_leaves(x):
    seen = []
    res = apply(lambda o, k, m: seen.append(o) or (k,m), x, 1, m=2)
    assert all(a is b for a,(_,b) in zip(seen, paths(x))) and len(seen)==len(paths(x))
    flat = paths(res)
    assert len(flat)==2*len(seen)

@fast
@given(nested, cuts)
def test_concat_inverts_split(x, c): same(to_concat([rows(x,i,j) for i,j in zip(c, c[1:])]), x)

@fast
@given(nested, cuts)
def test_concat_other_dim(x, c):
    t = apply(lambda t: t if t is None else t[None], x)
    parts = [apply(lambda o: o if o is None else o[:,i:j], t) for i,j in zip(c, c[1:])]
    same(to_concat(parts, dim=1), t)
    same(to_concat([apply(lambda o: o if o is None else o.flatten(1)[...,i:j], t) for i,j in zip(c, c[1:])], dim=-1),
         apply(lambda o: o if o is None else o.flatten(1)[...,:N], t))

@fast
@given(nested, st.permutations(range(N)))
def test_reorder(x, perm):
    res = nested_reorder(x, perm)
    same(res, apply(lambda t: t if t is None else torch.stack([t[i] for i in perm]), x))
    same(nested_reorder(res, tensor(perm).argsort()), x)
    same(nested_reorder(x, L(perm)), res)

def test_packed_sequences_are_not_concatenated():
    "Their parts were: the result had the samples of neither batch"
    p = nn.utils.rnn.pack_sequence([torch.ones(4), torch.ones(2)])
    with pytest.raises(TypeError, match='pad_packed_sequence'): to_concat([(p,), (p,)])

@pytest.mark.parametrize('idxs', [tensor([True, False, True]), [True, False], [1., 0.], np.array([1.5])])
def test_reorder_takes_indices_only(idxs):
    "A mask was converted to the indices 1, 0, 1, and fractions were cut off"
    with pytest.raises(TypeError, match='by their indices, not by torch'): nested_reorder(torch.arange(3), idxs)

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

def test_odd_mappings():
    o = Out(); o['logits'] = torch.ones(2)
    res = apply(lambda t: t*2, o)
    assert type(res) is Out and torch.equal(res.logits, torch.full((2,), 2.)) and torch.equal(o.logits, torch.ones(2))
    assert type(to_concat([o,o])) is Out and len(to_concat([o,o])['logits'])==4
    assert apply(lambda i: i+1, MappingProxyType({'a':1}))=={'a':2}
    e = Enc(a=tensor([1])); d = apply(lambda t: t+1, e)
    assert type(d) is Enc and d['a'].item()==2 and e['a'].item()==1
    d = apply(lambda t: t+1, defaultdict(list, a=1)); assert d.default_factory is list

def test_listy_of_own_class():
    class MyTuple(tuple): pass
    assert type(apply(lambda o: o+1, MyTuple((1,2)))) is MyTuple
    assert apply(lambda o: o+1, L(1,2))==L(2,3) and type(apply(lambda o: o, L([1]))) is L
    m = torch.rand(3,2).max(0)
    res = apply(lambda o: o+1, m)
    assert type(res) is type(m) and torch.equal(res.indices, m.indices+1)
    p = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert type(to_detach(p)) is type(p)

@fast
@given(st.lists(st.integers(), max_size=4))
def test_tuplify(xs):
    assert tuplify(xs)==tuplify(tuple(xs))==tuplify(L(xs))==tuplify(o for o in xs)==tuple(xs)
    assert detuplify(tuple(xs))==(None if not xs else xs[0] if len(xs)==1 else tuple(xs))

@fast
@given(nested)
def test_leaves(x): assert all(a is b for a,(_,b) in zip(leaves(x), paths(x), strict=True))
