"One rule of order: `order`, then who is first and who is last in an event. What is called, what `show_training_loop` prints and the rule agree"
import inspect, pickle, warnings
import pytest, torch
from hypothesis import given, strategies as st
import learnkit.all as lk
from learnkit import Callback
from learnkit.loop.callback import handler_of
from learnkit.learner.fit import companions
from learnkit.loop.dispatcher import Dispatcher, EventCalls, around_event, wrap_handler
from learnkit.loop.events import event
from learnkit.loop.run import running
from toys import draws, learner

EVENTS = 'before_fit','after_loss','before_step','after_batch'

def by_rule(cbs, name):
    "An independent sort: those that are first, those in between, those that are last, each by `order`, then as added"
    def group(cb): return 0 if name in cb.first_in else 2 if name in cb.last_in else 1
    places = [(group(cb), cb.order, i) for i,cb in enumerate(cbs) if handler_of(cb, name)]
    return [cbs[i] for *_,i in sorted(places)]

class Wraps(Callback):
    "Skips, replaces and surrounds handlers: whatever it does, those that are called are called in their order"
    def __init__(self, order, ways, outer): self.order,self.ways,self.outer = order,ways,outer
    def wrap_handler(self, name, cb, f):
        match self.ways.get(name):
            case 'none': return None
            case 'odd': return f if cb.learn.cbs.index(cb)%2 else None
            case 'other': return lambda: f()
        return f
    def around_event(self, name): return EventCalls(lambda: self.outer.append((name, 'begin')), lambda: self.outer.append((name, 'end'))) if name in self.ways else None
    def leaves(self, cb, name): return self.ways.get(name)=='none' or (self.ways.get(name)=='odd' and not cb.learn.cbs.index(cb)%2)

some = st.lists(st.sampled_from(EVENTS), max_size=2, unique=True).map(tuple)
@st.composite
def callback(draw):
    first,last = draw(some),draw(some)
    cb = Callback(**{e:lambda self: None for e in draw(st.lists(st.sampled_from(EVENTS), unique=True))})
    cb.order,cb.first_in,cb.last_in = draw(st.integers(-2, 2)),first,tuple(e for e in last if e not in first)
    return cb

@draws(100)
@given(st.lists(callback(), max_size=8), st.lists(st.tuples(st.integers(-3, 3), st.dictionaries(st.sampled_from(EVENTS), st.sampled_from(['none','odd','other']))), max_size=2))
def test_any_callbacks(cbs, ways):
    called,outer,d = [],[],Dispatcher()
    wrapping = [Wraps(*how, outer) for how in ways]
    for i,cb in enumerate(cbs):
        for e in EVENTS:
            if handler_of(cb, e): setattr(cb, e, lambda cb=cb: called.append(cb))
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); d.add_cbs([*cbs, *wrapping])
    for e in EVENTS:
        called.clear(); outer.clear()
        d(e)
        assert by_rule(cbs, e)==[*d.ordered_cbs(e)]
        assert called==[cb for cb in by_rule(cbs, e) if not any(w.leaves(cb, e) for w in wrapping)]
        n = sum(e in w.ways for w in wrapping)
        assert outer==[(e, 'begin')]*n+[(e, 'end')]*n

def everything(path):
    "Callbacks of each room that go together, some of them first or last in an event"
    return [lk.GradientAccumulation('2ba'), lk.MicroBatch(2), lk.GradientClip(1.), lk.SkipNaN(), lk.EMACallback(), lk.Pausable(), lk.CheckpointCallback(folder=path),
            lk.StopOnSignal(), lk.MixedPrecision('bf16'), lk.CheckShortCuts(), lk.CSVLogger(), lk.EarlyStoppingCallback(), lk.RollBackOnNaN(), lk.Clock(), lk.ProfileCallback()]

def test_the_library(tmp_path):
    "Of a Learner with many callbacks, at each event of a batch and of an epoch; only a profiler adds calls, around all others"
    tables = {}
    class Look(Callback):
        order = -10_000
        def after_epoch(self): tables.update({name:[cb for cb,_ in handlers] for name,handlers in [*self.learn._bound.items(), *self.learn._bound_else.items()]})
    learn = learner(path=tmp_path, cbs=[*everything(tmp_path), Look()])
    wrapping = [cb for cb in learn.cbs if wrap_handler(cb)]
    learn.fit(1)
    assert len(tables)>20 and wrapping
    cbs = list(learn.cbs)
    for name,found in tables.items():
        expected = [cb for cb in by_rule(cbs, name) if cb in found]
        assert found[0] is found[-1] is learn.profiler and found[1:-1]==[cb for cb in expected if cb is not learn.profiler or handler_of(cb, name)], name

def test_who_joins_processes_is_first_by_the_same_rule(tmp_path):
    "`FaultTolerant` once put calls of its own before all others; each callback has at most one place in an event, that of the rule"
    fault_tolerant = lk.FaultTolerant('http://localhost:1')
    learn = learner(path=tmp_path, cbs=[*(cb for cb in everything(tmp_path) if not isinstance(cb, lk.ProfileCallback)), fault_tolerant])
    found = [cb for cb in learn.cbs for cb in companions(cb)]
    assert [type(cb).__name__ for cb in found]==['JoinProcesses'] and not any(map(around_event, learn.cbs))
    with running(learn, 'fit', found):
        fault_tolerant.held_handlers = {}
        for name in event:
            called = [cb for cb,_ in learn._bind(name)]
            assert called==[cb for cb in by_rule(learn.cbs, name) if cb in called], name
            assert (learn.join_processes in called[:1])==(name in ('before_fit','after_epoch')), name

def test_what_is_printed(tmp_path):
    learn = learner(path=tmp_path, cbs=everything(tmp_path))
    cbs = list(learn.cbs)
    lines = {l.split()[0]:l for l in learn.show_training_loop().splitlines()}
    for name in event:
        if name not in lines: continue
        places = [lines[name].find(type(cb).__name__) for cb in by_rule(cbs, name)]
        assert places==sorted(places) and -1 not in places, name

def test_no_callback_is_first_and_last():
    with pytest.raises(TypeError, match='`after_loss` in both `first_in`'):
        class Both(Callback): first_in = last_in = ('after_loss',)

def test_an_answer_that_does_not_exist_raises_where_the_class_is_defined():
    "It would count as if the callback had said nothing"
    with pytest.raises(ValueError, match="Looks.acts is 'noting', but must be one of 'nothing', 'sometimes'"):
        class Looks(Callback): acts = 'noting'

def test_a_pickle_has_no_tables(tmp_path):
    "The order and the handlers are derived from the callbacks: a file must not name the class that holds them"
    learn = learner(path=tmp_path)
    learn('before_save_model')
    assert learn._call_order is not None and learn._bound
    assert learn.__getstate__().keys().isdisjoint({'_call_order','_bound','_bound_else'})
    again = pickle.loads(pickle.dumps(learn))
    assert again._call_order is None and again.ordered_cbs('before_fit').map(type)==learn.ordered_cbs('before_fit').map(type)
