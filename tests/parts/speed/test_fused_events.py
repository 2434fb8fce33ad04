"""A fused step and the loop: what is added to a batch, an event or a step, is never silently absent where the batch is one program.
Here a program is a stand-in, which nothing is compiled for."""
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
    "The function that would be compiled, as it is; a whole step is one of plain gradient descent"
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
    "Add event `name` to a step of the loop, as who edits its source: in the line before the one that contains `before`"
    lines = textwrap.dedent(inspect.getsource(vars(Loop)[step])).splitlines()
    i = next(i for i,l in enumerate(lines) if before in l)
    lines.insert(i, lines[i][:len(lines[i])-len(lines[i].lstrip())] + f"self('{name}')")
    ns = {}
    exec('\n'.join(lines), vars(loop), ns)
    monkeypatch.setattr(Loop, step, ns[step])
    for k in ('docs','depth','by'): monkeypatch.setattr(event, k, dict(getattr(event, k)))
    event.register(name, **kw)
    monkeypatch.setattr(event, name, name)   # so that it is taken away again

def test_without_handlers_a_batch_is_whole():
    learn,cb = learner(),StandIn()
    learn.fit(1, cbs=cb)
    assert (cb.compiled_part, cb.counts['fused'])==('whole', 3)

@pytest.mark.parametrize('step, before, kw, said', [
    ('_do_grad_opt',  "if not (self.current_run.in_part", dict(after='after_backward'), 'is fused up to the gradients'),
    ('_do_step',      "self('after_step')",  dict(after='before_step', depth=4), 'is fused up to the gradients'),
    ('_do_one_batch', 'run.pred = ',         dict(after='before_pred', depth=4), 'is not fused'),
    ('_do_grad_opt',  "self('after_backward')", dict(after='before_backward', depth=4), 'is not fused')])
def test_an_event_that_is_added_to_a_batch_is_handled(monkeypatch, step, before, kw, said):
    "Wherever the table has it, and in each batch: those that would be fused, too"
    with_event(monkeypatch, step, before, 'at_new_event', **kw)
    heard,plain = [],[]
    learn,cb = learner(),StandIn()
    with pytest.warns(UserWarning, match=f'{said}: .* has a handler for `at_new_event`'):
        learn.fit(1, cbs=[cb, Callback(at_new_event=lambda self: heard.append(self.learn.iter))])
    other = learner()
    other.fit(1, cbs=Callback(at_new_event=lambda self: plain.append(self.learn.iter)))
    assert heard==plain==[0, 1, 2, 3] and cb.compiled_part==('gradients' if 'gradients' in said else None)
    assert all(torch.allclose(a, b) for a,b in zip(learn.model.parameters(), other.model.parameters()))

def test_an_event_around_a_batch_is_handled(monkeypatch):
    "As `before_transfer`, of the newcomer: the loop fires it before the batch is ready, fused or not"
    with_event(monkeypatch, '_do_fetched', 'self._split', 'before_transfer', after='after_fetch', depth=3)
    heard,cb = [],StandIn()
    learner().fit(1, cbs=[cb, Callback(before_transfer=lambda self: heard.append(self.learn.iter))])
    assert heard==[0, 1, 2, 3] and (cb.compiled_part, cb.counts['fused'])==('whole', 3)

@pytest.mark.parametrize('step', batch_steps)
def test_a_step_of_ones_own_is_done(step):
    "Whichever one it is, of those that a program does in one"
    calls = []
    def own(self): calls.append(self.iter); return getattr(Learner, step)(self)
    learn,cb = learner(type('Mine', (Learner,), {step:own})),StandIn()
    with pytest.warns(UserWarning, match=f'is not fused: the Learner has its own `{step}`|another callback wraps the batch'): learn.fit(1, cbs=cb)
    assert calls==[0, 1, 2, 3] and cb.counts['fused']==0

def body_of(step):
    "A step of the loop and those that it calls, in the order of the source; and the events that they fire"
    tree = ast.parse(textwrap.dedent(inspect.getsource(vars(Loop)[step])))
    steps,events = [step],{n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in event}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(vars(Loop).get(n.func.attr), type(body_of))]
    for call in sorted(calls, key=lambda n: n.lineno):
        more,fired = body_of(call.func.attr)
        steps,events = steps + more,events | fired
    return steps,events

def test_the_steps_and_events_are_those_of_the_loop():
    "They are named in `fused`, which reads no source: a step or an event that is added to a batch is added there, or to the table of events"
    steps,events = body_of('_do_one_batch')
    assert steps==[*batch_steps]
    early,late = batch_events()
    assert {*early, *late}==events=={e for e in event.declared if event.depth[e]>=4} and late[0]=='after_backward'

def test_a_step_that_replaces_one_in_an_instance_is_done():
    "As a test or a user does who assigns to `learn._step`"
    calls,learn,cb = [],learner(),StandIn()
    def own(): calls.append(learn.iter); return Learner._step(learn)
    learn._step = own
    with pytest.warns(UserWarning, match='the Learner has its own `_step`'): learn.fit(1, cbs=cb)
    assert calls==[0, 1, 2, 3] and cb.counts['fused']==0

# what a program does in place of handlers, it does of those that the class has: a new one is to be looked at here, and in the program
KNOWN = {GradientClip: {'before_step'}, CheckShortCuts: {'before_step','after_step','after_cancel_step','before_zero_grad','after_zero_grad'},
         EMACallback: {'before_pred','before_backward','before_step','after_cancel_step','after_step'},
         DiLoCo: {'after_step','after_cancel_step'},   # the latter only marks a step that was cancelled, which a fused one can't be
         GradientAccumulation: {'after_loss','after_cancel_backward','after_backward','before_step','before_zero_grad'},
         MixedPrecision: {'before_pred','after_pred','after_loss','before_backward','before_step','after_step'}}

def subclasses(cls):
    for o in cls.__subclasses__(): yield o; yield from subclasses(o)

def test_whoever_says_what_it_is_compiled_as_has_no_other_handlers():
    import learnkit.all
    inside = [e for events in batch_events() for e in events]
    handled = {c:{e for e in inside if hasattr(c, e)} for c in subclasses(Callback) if c.__module__.startswith('learnkit.') and 'compiled' in vars(c)}
    assert handled==KNOWN
