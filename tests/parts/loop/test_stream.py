"""Which batches of a loader a phase gets, and what an iterator that ends early tells of the one inside"""
import copy, pickle
import pytest
from learnkit.loop.loop import BatchStream, Limited, loader_len

@pytest.mark.parametrize('limit,start,skipped,n', [(5, 0, 0, 5), (5, 3, 0, 2), (5, 3, 1, 3), (6, 2, 2, 6), (3, 3, 0, 0), (2, 3, 0, 0), (40, 1, 1, 40)])
def test_a_limit_counts_from_the_first_batch_of_the_phase(limit, start, skipped, n):
    "Those before `start` are not read again, and those that were cancelled before they were fetched are still to come"
    s = BatchStream(range(99))
    s.start,s.skipped = start,skipped
    s.stop_at(limit); s.stop_at(70)
    s.open()
    assert [*s]==[*range(n)] and s.n==limit

def test_no_more_is_read_than_is_given():
    it = iter(range(9))
    assert [*Limited(it, 2)]==[0, 1] and next(it)==2 and [*Limited(it, -1)]==[] and next(it)==3

class Knows:
    "An iterator with attributes, before and behind `it` in the alphabet"
    indices,zeta,it = [3],'z','mine'
    def __iter__(self): return self
    def __next__(self): return 0

def test_the_inner_one_is_read():
    l = Limited(Knows(), 1)
    assert (l.indices, l.zeta)==([3], 'z') and isinstance(l.it, Knows) and l.n_left==1
    with pytest.raises(AttributeError, match="'Knows' object has no attribute 'alpha'"): l.alpha
    s = BatchStream(Knows())
    assert s.indices is None
    s.stop_at(1); s.open()
    assert s.indices==[3]

def test_a_half_made_one_can_be_copied():
    "`copy` and `pickle` ask for attributes before there is `it`"
    for new in copy.copy(l := Limited(Knows(), 3)), pickle.loads(pickle.dumps(l)): assert (new.n_left, new.zeta)==(3, 'z')
    with pytest.raises(AttributeError, match='zeta'): object.__new__(Limited).zeta

@pytest.mark.parametrize('what', ['stop_at', 'replace', 'wrap'])
def test_too_late(what):
    s = BatchStream(range(3))
    args = dict(stop_at=1, replace=range(2), wrap=iter)
    getattr(s, what)(args[what])
    s.open()
    with pytest.raises(RuntimeError, match=f'`batches.{what}` comes too late'): getattr(s, what)(args[what])
    assert len([*s])==dict(stop_at=1, replace=2, wrap=3)[what]

class Length:
    def __init__(self, e): self.e = e
    def __len__(self): raise self.e

def test_lengths():
    told = [loader_len(Length(e)) for e in (NotImplementedError(), TypeError(), TypeError("object of type 'int' has no len()"), TypeError('Cannot determine the valid length: have valid length'))]
    assert told==[None]*4 and loader_len(iter([])) is None and loader_len([1])==1
    for e in TypeError("object of type 'NoneType' has no len()"), TypeError('other'), ValueError():
        with pytest.raises(type(e)): loader_len(Length(e))

def test_the_length_is_set_whenever_it_changes():
    told = []
    s = BatchStream(range(9), told.append)
    s.stop_at(4); s.stop_at(6); s.replace(range(3)); s.replace(iter('ab'))
    assert told==[9, 4, 4, 3, 4] and s.n==4
    assert BatchStream(iter('ab')).n is None
