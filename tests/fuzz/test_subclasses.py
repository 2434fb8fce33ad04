"""Some of the runs of `subclasses.py`, with what users write, compared with a hand-written loop. More of them: python
tests/fuzz/subclasses.py --minutes 20"""
import pytest, torch
import subclasses
from learnkit.optim import optimizer

@pytest.mark.slow
def test_what_users_write():
    n,ended,wrong = subclasses.fuzz(1, n=60)
    assert n==60 and not wrong, '\n'.join(f'{fault}\n{script}' for _,fault,script in wrong[:2])
    assert all(ended[f'{k}: alike']>2 for k in subclasses.kinds), ended

def test_a_short_cut_too_many_would_be_noticed(monkeypatch):
    kind,script = next(o for i in range(999) for o in [subclasses.draw(3, i)] if o[0]=='trained' and '# optimizer: wraps' in o[1] and 'torch.optim.SGD' in o[1] and 'ShortCuts()' not in o[1])
    monkeypatch.setattr(optimizer, 'unwrap_step', lambda step: torch.optim.SGD.step.__wrapped__.__wrapped__)
    how,said = subclasses.attempt(kind, script)
    assert how=='otherwise' and 'weights' in said and 'calls' in said
