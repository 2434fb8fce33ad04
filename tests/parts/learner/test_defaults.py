"""`defaults.callbacks`: fastai's list of default callbacks was ignored without a word. What is learnkit's in it counts."""
import pytest
from fastcore.basics import defaults
from learnkit.loop.callback import Callback
from learnkit.learner.bars import ProgressCallback
from learnkit.measure.recorder import Recorder
from learnkit.learner.learner import TrainEvalCallback
from toys import learner

class Mine(Callback): pass
class Theirs:
    order,name = 0,'theirs'
    def __call__(self, name): raise AssertionError('a default of another library was called')

@pytest.fixture
def listed(monkeypatch):
    return lambda *cbs: monkeypatch.setattr(defaults, 'callbacks', list(cbs), raising=False)

def kinds(learn): return [type(cb) for cb in learn.cbs]

def test_only_learnkits_replace_the_defaults(listed):
    listed(TrainEvalCallback, Recorder, Mine)
    learn = learner()
    assert kinds(learn)==[TrainEvalCallback, Recorder, Mine]
    learn.fit(1)
    assert len(learn.recorder.values)==1

def test_without_a_recorder(listed):
    "The smallest list: the loop needs nothing but the mode of the model"
    listed(TrainEvalCallback)
    learn = learner()
    learn.fit(1)
    assert kinds(learn)==[TrainEvalCallback] and learn.loss is None

def test_what_was_added_to_another_librarys(listed):
    before = kinds(learner())
    listed(Theirs, Mine, ProgressCallback)
    assert kinds(learner())==[*before, Mine]

def test_default_cbs_turns_all_of_it_off(listed):
    listed(Mine)
    assert kinds(learner(default_cbs=False))==[]
