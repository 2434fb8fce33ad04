"An event that is added to the loop is heard wherever a batch, or a part of one, is done: there is no other body of a batch"
import inspect, textwrap

import pytest, torch
from learnkit.all import Callback, GradientAccumulation, MicroBatch, ReplayOnOOM
from learnkit.loop import loop as module
from learnkit.loop.events import event
from learnkit.loop.loop import Loop
from learnkit.speed.virtual import VirtualShards
from toys import learner

LINES = dict(_do_fetched="self._split(self._set_device(self.batch))", _do_one_batch="self('after_pred')", _do_grad_opt="self('after_backward')", _do_step="self('after_step')")

@pytest.fixture
def added(request, monkeypatch):
    "An event behind that line of the loop"
    for name in ('docs','depth','fired_by'): monkeypatch.setattr(event, name, dict(getattr(event, name)))
    event.register('before_something', 'added', depth=4, after='before_batch')
    source,line = textwrap.dedent(inspect.getsource(getattr(Loop, request.param))),LINES[request.param]
    assert source.count(line)==1
    names = dict(vars(module))
    exec(source.replace(line, f"{line}; self('before_something')"), names)
    monkeypatch.setattr(Loop, request.param, names[request.param])
    yield request.param
    del event.before_something

CASES = {'plain': (lambda: [], (4, 4, 4)), 'micro': (lambda: [MicroBatch(n=2)], (4, 8, 4)), 'replay': (lambda: [ReplayOnOOM(1)], (4, None, 4)),
         'accumulated': (lambda: [GradientAccumulation(10**6)], (4, 4, 1)), 'shards': (lambda: [VirtualShards(2)], (4, 4, 2))}

@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize('added', LINES, indirect=True)
def test_it_is_handled_for_each_part(added, case):
    "Once for each batch of the loader, for each part, or for each step"
    cbs,(fetched,parts,steps) = CASES[case]
    heard,like = [],[]
    beside = dict(_do_fetched='before_batch', _do_one_batch='after_pred', _do_grad_opt='after_backward', _do_step='after_step')[added]
    class Counts(Callback):
        run_valid = False
        def before_something(self): heard.append(self.learn.iter)
    setattr(Counts, beside, lambda self: like.append(self.learn.iter))
    learner(4, 0, cbs=[Counts(), *cbs()]).fit(1)
    expected = dict(_do_fetched=fetched, _do_one_batch=parts, _do_grad_opt=parts, _do_step=steps)[added]
    assert heard==like and len(heard)==(expected or len(like)) and len(heard)>0
