"Rows of a history in a checkpoint: whatever is added, changed, taken away or set anew, what is decoded is what is there"
import copy, io, pickle

import pytest, torch
from hypothesis import given, strategies as st

from learnkit.data.files import to_serializable
from learnkit.measure.history import History, RowEncoder, decode_rows
from toys import draws, equal

values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.sampled_from([float('nan'), 'a\nb', '\ud800', 10**500, -0.]),
                   st.builds(lambda n: torch.arange(n), st.integers(0, 3)), st.lists(st.integers(), max_size=2))
rows = st.dictionaries(st.sampled_from(['epoch','loss','a\nb','']), values, max_size=4)
steps = st.tuples(st.sampled_from(['add','set','change','drop','pop','clear']), st.integers(0, 30), rows)

def same(a, b):
    "With the same names and values"
    if len(a)!=len(b) or [row.keys() for row in a]!=[row.keys() for row in b]: return False
    return all(equal(v, w) for row,other in zip(a, b) for v,w in [(row[k], other[k]) for k in row])

def exactly(a, b): return same(a, b) and [[repr(v) for v in row.values()] for row in a]==[[repr(v) for v in row.values()] for row in b]

def apply_step(h, kind, n, row):
    if kind=='add': h.append(row)
    elif kind=='clear': h.clear()
    elif not h: return
    elif kind=='set': h[n%len(h)] = row
    elif kind=='change': h[n%len(h)].update(row)
    elif kind=='drop': del h[n%len(h)]
    else: h[n%len(h)] and h[n%len(h)].popitem()

@given(st.lists(st.tuples(steps, st.booleans()), max_size=25))
@draws(150)
@pytest.mark.slow
def test_decoded_is_what_is_there(changes):
    h = History()
    for (kind,n,row),saves in changes:
        apply_step(h, kind, n, row)
        if not saves: continue
        state = h.state_dict()
        assert same(decode_rows(state), h)   # what has changed from 1 to True, which is equal, may be either
        again = History([dict(other=1)])
        again.load_state_dict(copy.deepcopy(state))
        assert same(again, h) and exactly(decode_rows(RowEncoder()(h)), h)

def test_a_file_holds_it():
    h = History([dict(epoch=0, loss=float('nan'), note='ä\n'), dict(epoch=1, loss=float('-inf'), note=None), dict(epoch=2, loss=torch.ones(2), note='')])
    file = io.BytesIO()
    torch.save(to_serializable(h.state_dict()), file)
    file.seek(0)
    assert exactly(decode_rows(torch.load(file, weights_only=True)), h)

def test_an_older_state_is_a_list_of_rows():
    h = History()
    h.load_state_dict([dict(epoch=0, loss=.5), dict(epoch=1, loss=None)])
    assert h==[dict(epoch=0, loss=.5), dict(epoch=1, loss=None)] and same(decode_rows(h.state_dict()), h)

def test_each_row_is_encoded_once(monkeypatch):
    "Also in a copy, and one row alone if only that one has changed"
    encoded = []
    line = RowEncoder._encode_line
    monkeypatch.setattr(RowEncoder, '_encode_line', lambda self, row: (encoded.append(row['epoch']), line(self, row))[1])
    h = History(dict(epoch=i, loss=.1*i) for i in range(10))
    h.state_dict()
    for o in (h, copy.deepcopy(h), pickle.loads(pickle.dumps(h))): o.state_dict()
    assert encoded==[*range(10)]
    h.append(dict(epoch=10, loss=1.)); h.state_dict()
    h[-1]['valid_loss'] = 2.; h.state_dict()
    assert encoded==[*range(10), 10, 10]
