"""Run each row of the table in `rows`, and check that the table is complete"""
from collections import Counter
from inspect import signature

import pytest, torch
from learnkit.all import event
from rows import added, fastai_events, renamed, summary, table
from toys import few

torch.set_num_threads(1)
sizes = {'0':20, '1A':25, '1B':74, '1C':75, '1D':41}

shown = {}   # function -> the rows that it shows
for r in table: shown.setdefault(r.check, []).append(r)
shown.pop(None, None)

@few(20)
@pytest.mark.parametrize('check', [pytest.param(f, id=' '.join(r.id for r in rows)) for f,rows in shown.items()])
def test_rows(check, request):
    "Run each function of the table; the test id lists the rows that it shows"
    check(**{k:request.getfixturevalue(k) for k in signature(check).parameters})

def test_every_row_is_there_once():
    ids = [r.id for r in table]
    assert [i for i,n in Counter(ids).items() if n>1]==[]
    assert {*ids}=={f'{s}.{i+1}' for s,n in sizes.items() for i in range(n)}

def test_a_row_says_what_it_is():
    for r in table:
        assert r.name and r.state in ('works','served')
        assert r.check if r.state=='works' else len(r.why)>20, r.id

def test_how_many():
    assert summary()==dict(rows=235, works=223, served=12)

def test_union_of_events():
    "Every event of the four exists under its own name or a documented other one; no name is used twice"
    union = [*fastai_events, *added]
    assert len(union)==len({*union})==60
    assert {e for e in union if e not in event}=={*renamed} and all(e in event for e in renamed.values())
