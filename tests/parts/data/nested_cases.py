"Nested batches to draw, and an oracle for them that shares nothing with the library"
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Mapping

import torch
from hypothesis import strategies as st

from learnkit.data.nested import apply
from toys import draws

fast = draws(30)
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
def rows(x, i, j): return apply(lambda t: t if t is None else t[i:j], x)

class Enc(UserDict):
    "Like what a tokenizer gives: moves itself"
    def to(self, device): self.data = {k:v.to(device) for k,v in self.data.items()}; self.moved = device; return self
