"""A fused step and the loop: an event or a step added to a batch is never silently skipped where the batch is one program.
Here an uncompiled function stands in for the program."""
import ast, inspect, textwrap
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.precision import MixedPrecision
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.learner.short_cuts import CheckShortCuts
from learnkit.loop import loop
from learnkit.loop.callback import Callback
from learnkit.loop.events import event
from learnkit.loop.loop import Loop
from learnkit.processes.diloco import DiLoCo
from learnkit.speed import fused
from learnkit.speed.fused import FusedStep, batch_events, batch_steps
from learnkit.speed.train_step import make_train_step

class StandIn(FusedStep):
    "Runs the training step uncompiled; a whole step is plain gradient descent with lr=0.1"
    def _choose_part(self, do):
        super()._choose_part(do)
        self.run_step = self._run
    def _run(self, inputs, xb, yb, shape):
        pred,loss,grads = make_train_step(inputs.model, inputs.loss_func)(xb, yb, inputs.params, None, None)
        if self.compiled_part!='whole': return pred,loss,grads
        with torch.no_grad():
            for p,g in zip(inputs.params, grads): p -= .1*g
        return pred,loss,[]

@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    class Settings:
        def __enter__(self): pass
        def __exit__(self, *args): pass
    monkeypatch.setattr(fused, 'compile_config', Settings)

def learner(cls=Learner):
    torch.manual_seed(0)
    return cls(DataLoaders([(torch.randn(4, 2), torch.randint(3, (4,))) for _ in range(4)]), nn.Linear(2, 3), F.cross_entropy, SGD, lr=.1)

def with_event(monkeypatch, step, before, name, **kw):
    "Add event `name` to the source of a step of the loop, in the line before the one that contains `before`"
    lines = textwrap.dedent(inspect.getsource(vars(Loop)[step])).splitlines()
    i = next(i for i,l in enumerate(lines) if before in l)
    lines.insert(i, lines[i][:len(lines[i])-len(lines[i].lstrip())] + f"self('{name}')")
    ns = {}
    exec('\n'.join(lines), vars(loop), ns)
    monkeypatch.setattr(Loop, step, ns[step])
    for k in ('docs','depth','fired_by'): monkeypatch.setattr(event, k, dict(getattr(event, k)))
    event.register(name, **kw)
    monkeypatch.setattr(event, name, name)   # so that monkeypatch removes it

def test_without_handlers_a_batch_is_whole():
    learn,cb = learner(),StandIn()
    learn.fit(1, cbs=cb)
    assert (cb.compiled_part, cb.counts['fused'])==('whole', 3)

@pytest.mark.parametrize('step, before, kw, words', [
    ('_do_grad_opt',  "if not (self.current_run.in_part", dict(after='after_backward'), 'is fused up to the gradients'),
    ('_do_step',      "self('after_step')",  dict(after='before_step', depth=4), 'is fused up to the gradients'),
    ('_do_one_batch', 'run.pred = ',         dict(after='before_pred', depth=4), 'is not fused'),
    ('_do_grad_opt',  "self('after_backward')", dict(after='before_backward', depth=4), 'is not fused')])
def test_an_added_event_of_a_batch_is_fired(monkeypatch, step, before, kw, words):
    "An added event with a handler is fired in every batch, wherever it is declared, and limits the fusion"
    with_event(monkeypatch, step, before, 'at_new_event', **kw)
    fired_at,plain = [],[]
    learn,cb = learner(),StandIn()
    with pytest.warns(UserWarning, match=f'{words}: .* has a handler for `at_new_event`'):
        learn.fit(1, cbs=[cb, Callback(at_new_event=lambda self: fired_at.append(self.learn.iter))])
    other = learner()
    other.fit(1, cbs=Callback(at_new_event=lambda self: plain.append(self.learn.iter)))
    assert fired_at==plain==[0, 1, 2, 3] and cb.compiled_part==('gradients' if 'gradients' in words else None)
    assert all(torch.allclose(a, b) for a,b in zip(learn.model.parameters(), other.model.parameters()))

def test_an_added_event_before_a_batch_is_fired(monkeypatch):
    "An event before the batch is ready, such as `before_transfer`, is fired for fused batches too"
    with_event(monkeypatch, '_do_fetched', 'self._split', 'before_transfer', after='after_fetch', depth=3)
    fired_at,cb = [],StandIn()
    learner().fit(1, cbs=[cb, Callback(before_transfer=lambda self: fired_at.append(self.learn.iter))])
    assert fired_at==[0, 1, 2, 3] and (cb.compiled_part, cb.counts['fused'])==('whole', 3)

@pytest.mark.parametrize('step', batch_steps)
def test_an_overridden_step_is_called(step):
    "If a Learner overrides any step of a batch, its method is called and no batch is fused"
    calls = []
    def override(self): calls.append(self.iter); return getattr(Learner, step)(self)
    learn,cb = learner(type('Mine', (Learner,), {step:override})),StandIn()
    with pytest.warns(UserWarning, match=f'is not fused: the Learner has its own `{step}`|another callback wraps the batch'): learn.fit(1, cbs=cb)
    assert calls==[0, 1, 2, 3] and cb.counts['fused']==0

def body_of(step):
    "A step of the loop and the steps that it calls, in source order, and the events that they fire"
    tree = ast.parse(textwrap.dedent(inspect.getsource(vars(Loop)[step])))
    steps,events = [step],{n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in event}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(vars(Loop).get(n.func.attr), type(body_of))]
    for call in sorted(calls, key=lambda n: n.lineno):
        more,fired = body_of(call.func.attr)
        steps,events = steps + more,events | fired
    return steps,events

def test_the_steps_and_events_are_those_of_the_loop():
    "The steps listed in `fused`, and the declared events of a batch, are those in the loop's source"
    steps,events = body_of('_do_one_batch')
    assert steps==[*batch_steps]
    early,late = batch_events()
    assert {*early, *late}==events=={e for e in event.declared if event.depth[e]>=4} and late[0]=='after_backward'

def test_a_step_assigned_to_the_instance_is_called():
    "A function assigned to `learn._step` is called, and no batch is fused"
    calls,learn,cb = [],learner(),StandIn()
    def override(): calls.append(learn.iter); return Learner._step(learn)
    learn._step = override
    with pytest.warns(UserWarning, match='the Learner has its own `_step`'): learn.fit(1, cbs=cb)
    assert calls==[0, 1, 2, 3] and cb.counts['fused']==0

# a program replaces these handlers of callbacks with `compiled`; a new handler must be added here and to the program
KNOWN = {GradientClip: {'before_step'}, CheckShortCuts: {'before_step','after_step','after_cancel_step','before_zero_grad','after_zero_grad'},
         EMACallback: {'before_pred','before_backward','before_step','after_cancel_step','after_step'},
         DiLoCo: {'after_step','after_cancel_step'},   # `after_cancel_step` only marks a cancelled step, which a fused one can't be
         GradientAccumulation: {'after_loss','after_cancel_backward','after_backward','before_step','before_zero_grad'},
         MixedPrecision: {'before_pred','after_pred','after_loss','before_backward','before_step','after_step'}}

def subclasses(cls):
    for o in cls.__subclasses__(): yield o; yield from subclasses(o)

def test_compiled_callbacks_have_only_known_handlers():
    import learnkit.all
    inside = [e for events in batch_events() for e in events]
    handled = {c:{e for e in inside if hasattr(c, e)} for c in subclasses(Callback) if c.__module__.startswith('learnkit.') and 'compiled' in vars(c)}
    assert handled==KNOWN
