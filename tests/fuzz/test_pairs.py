"""Some pairs of callbacks in one fit. All of them: python tests/fuzz/pairs.py"""
import os
import pairs
import pytest

SAMPLE = pairs.all_pairs()[::1 if os.environ.get('LEARNKIT_SWEEP') else 97]

@pytest.mark.parametrize('pair', SAMPLE, ids=' and '.join)
def test_pairs(pair):
    faults = {length:pairs.attempt(pair, length) for length in pairs.LENGTHS}
    assert not any(faults.values()), faults

class Writes(pairs.Callback):
    "Claims to observe, and changes a weight"
    observes = True
    def before_step(self): next(self.learn.model.parameters()).data.mul_(2)

class Forgets(pairs.Callback):
    "Changes the weights by a count that no checkpoint saves"
    saves = ()
    n = 0
    def before_step(self):
        if not self.training: return
        self.n += 1
        next(self.learn.model.parameters()).data.mul_(1 + self.n/100)

@pytest.mark.parametrize('cls,text', [(Writes,'changes'), (Forgets,'resumed after')])
def test_a_planted_fault_is_found(monkeypatch, cls, text):
    monkeypatch.setattr(pairs, cls.__name__, cls, raising=False)
    monkeypatch.setattr(pairs, 'observers', [f'{cls.__name__}()'])
    assert any(text in fault for fault in pairs.attempt((f'{cls.__name__}()', 'GradientClip(.5)'), 2))
