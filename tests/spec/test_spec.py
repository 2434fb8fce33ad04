"""The loop against its specification: with every Cancel and ordinary errors raised at every event, a run must have
exactly the trace and the end that the oracle predicts, and leave a working Learner. `oracle.py` defines a play."""
import itertools, os, re
from collections import Counter
import pytest, torch
from torch import nn
from hypothesis import HealthCheck, given, settings, strategies as st
import learnkit as core
from learnkit.loop.callback import Callback
from learnkit.loop.events import event
from learnkit.learner.bars import ProgressCallback
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from oracle import FIT, FIRED, IDLE, IN_BATCH, SCOPES, TRAIN, VALID, Part, Play, Oracle, predict, scopes
from toys import few, slow

CASES = Counter()

@pytest.fixture(scope='module', autouse=True)
def say_how_many(request):
    yield
    with request.config.pluginmanager.get_plugin('capturemanager').global_and_fixture_disabled():
        print(f'\nspecification: {sum(CASES.values())} plays compared with the oracle: {dict(CASES)}')

# the exceptions to raise
CANCELS = {scope: getattr(core, name) for name,scope in SCOPES.items()}
def foreign(name, base=Exception): return type(name, (base,), {})
def variants(name, ours):
    "Classes that must behave like `ours`: a subclass, another library's (both spellings), and a subclass of that"
    theirs = foreign(f'{name}Exception')
    return [type('Mine', (ours,), {}), theirs, foreign(name), foreign('Theirs', theirs), foreign(name, BaseException)]

VARIANTS = [variants(name, CANCELS[scope]) for name,scope in SCOPES.items()]
BOTH = type('Both', (CANCELS['batch'], CANCELS['epoch']), {})   # ends the innermost of the two scopes
# StopIteration and GeneratorExit may end a loop silently; here they must be errors like any other
ERRORS = [ValueError, KeyboardInterrupt, StopIteration, GeneratorExit]

# the real loop
class Endless(BaseException): "Stops a loop that would not end"

class Actor(Callback):
    "Plays a `Part` in a real run"
    def __init__(self, part, stage): self.part,self.stage,self.order = part,stage,part.order

    def receive(self, ev):
        s,learn = self.stage,self.learn
        k = s.n_received[self.part.name,ev]
        s.n_received[self.part.name,ev] += 1
        s.trace.append((self.part.name, ev, learn.mode, learn.training if ev in IN_BATCH else None,
                        learn.exc and type(learn.exc)))
        if len(s.trace) > 20_000: raise Endless
        if (ev,k) in self.part.acts: s.act(learn, (type(self).__name__, ev), *self.part.acts[ev,k])

def method(ev):
    def f(self): self.receive(ev)
    f.__name__ = ev
    return f
METHODS = {ev: method(ev) for ev in FIRED+IDLE}
CLASSES = {}

def actor(part, stage):
    "An Actor whose class has the handlers and flags of `part`"
    key = part.name,part.handles,part.modes
    if key not in CLASSES:
        attrs = {ev: METHODS[ev] for ev in part.handles}
        CLASSES[key] = type(f'Part{part.name}', (Actor,), attrs | {'modes': part.modes})
    res = CLASSES[key](part, stage)
    res.run_train,res.run_valid = part.run_train,part.run_valid
    return res

class Batches:
    "A loader that may fail, and continues at the next call"
    def __init__(self, stage, name): self.stage,self.name = stage,name
    def __len__(self): return getattr(self.stage.play, self.name)
    def __iter__(self):
        self.stage.call('iter')
        return BatchIter(self)

class BatchIter:
    def __init__(self, dl): self.dl,self.left = dl,len(dl)
    def __iter__(self): return self
    def __next__(self):
        self.dl.stage.call('data')
        if not self.left: raise StopIteration
        self.left -= 1
        return torch.ones(1,1),torch.zeros(1,1)

class Model(nn.Module):
    def __init__(self, stage):
        super().__init__()
        self.lin,self.stage = nn.Linear(1,1),[stage]  # in a list, so that the stage does not become part of the model
    def forward(self, x):
        self.stage[0].call('model')
        return self.lin(x)

class Loss(nn.Module):
    def __init__(self, stage):
        super().__init__()
        self.reduction,self.stage = 'mean',[stage]
    def forward(self, pred, targ):
        self.stage[0].call('loss')
        loss = nn.functional.mse_loss(pred, targ, reduction=self.reduction)
        if loss.requires_grad: loss.register_hook(lambda g: self.stage[0].call('backward'))
        return loss

class Stage:
    "A Learner whose data, model, loss, metric and optimizer fail as a `Play` says"
    def __init__(self, valid=True, metric=False, progress=False, **kw):
        stage,self.loss = self,Loss(self)
        class SGD(torch.optim.SGD):
            def step(self, *args, **kwargs):
                stage.call('step')
                return super().step(*args, **kwargs)
        def measure(pred, targ):
            self.call('metric')
            return (pred-targ).abs().mean()
        dls = DataLoaders(Batches(self, 'n_train'), *[Batches(self, 'n_valid')]*valid)
        self.learn = Learner(dls, Model(self), self.loss, opt_func=SGD, lr=1e-3, metrics=[measure]*metric, **kw)
        if not progress: self.learn.remove_cbs(ProgressCallback).logger = lambda row: None
        self.before = self.state()
        self.start(Play((), []))

    def call(self, src):
        k = self.calls[src]
        self.calls[src] += 1
        if (src,k) in self.play.faults: self.throw(self.play.faults[src,k])

    def throw(self, cls, where=None):
        e = cls()
        self.raised.append((e, e.args, where))
        raise e

    def act(self, learn, where, what, arg=None):
        if   what == 'raise':    self.throw(arg, where)
        elif what == 'fit':      learn.fit(1)
        elif what in ('validate', 'predict'):
            try: self.call_run(what)
            except BaseException as e:
                if not arg or isinstance(e, Endless): raise
        elif what == 'add':      self.enter(arg)
        elif what == 'remove':   [learn.remove_cb(cb) for cb in self.cast if cb.part.name == arg and cb in learn.cbs]
        elif what == 'mute':
            for cb in self.cast:
                if cb.part.name == arg: cb.run = False

    def enter(self, part):
        self.cast.append(actor(part, self))
        self.learn.add_cb(self.cast[-1])

    def state(self):
        "The state that every run must restore"
        l = self.learn
        return dict(mode=l.mode, exc=l.exc, logger=l.logger, loss_func=l.loss_func, reduction=l.loss_func.reduction,
            grad=torch.is_grad_enabled(), cbs=[cb for cb in l.cbs if not isinstance(cb, Actor)],
            mute=[cb for cb in l.cbs if not cb.run])

    def call_run(self, kind, *args):
        if   kind == 'fit':      self.learn.fit(*args)
        elif kind == 'validate': self.learn.validate()
        else: self.learn.get_preds(with_loss=True)

    def run(self, *args):
        "Do a run; return the type of the exception that it raises, the faults of that exception, and its notes"
        try: self.call_run(*args)
        except BaseException as e:
            where = next((r for r in self.raised if r[0] is e), None)
            notes = '\n'.join(getattr(e, '__notes__', []))
            if where is None and type(e) is KeyboardInterrupt: raise  # a real Ctrl-C
            return type(e), self.faults(e, where, notes), notes
        return None, [], ''

    def faults(self, e, where, notes):
        """What is wrong with `e`: it must be the object that was raised, with its arguments and a note of the place, or
        name the lost Cancel"""
        if where:
            _,args,cb = where
            res = ['other arguments'] if e.args != args else []
            if cb and not all(w in notes for w in cb): res.append(f'no note says where: {notes!r}')
            return res
        cause = next((r for r in self.raised if r[0] is e.__cause__), None)
        if type(e) is not RuntimeError: return [f'came from nowhere: {e!r}']
        if cause is None: return [] if 'fit' in str(e) else [f'came from nowhere: {e!r}']  # a fit within a fit
        words = [n for n in SCOPES if n in {c.__name__.removesuffix('Exception') for c in type(cause[0]).__mro__}]
        words = [type(cause[0]).__name__, *[SCOPES[n] for n in words][:1]]
        words += cause[2] or ()
        return [f'does not name {w}: {e}' for w in words if w not in str(e)]

    def start(self, play):
        "Reset the stage for `play`, add its callbacks, and return the Learner"
        self.play,self.trace,self.cast,self.raised = play,[],[],[]
        self.n_received,self.calls = Counter(),Counter()
        for p in play.parts: self.enter(p)
        return self.learn

    def perform(self, play):
        "The trace of `play`, the exception of each run, what is wrong with these or not restored, and the notes"
        self.start(play)
        ends,mess = [],[]
        def run(r):
            ends.append(self.run(*r))
            if (now := self.state()) != self.before: mess.append({k: v for k,v in now.items() if v != self.before[k]})
        for r in play.runs: run(r)
        if ends and ends[-1][0]:
            for r in play.then: run(r)
        self.learn.remove_cbs([cb for cb in self.cast if cb in self.learn.cbs])
        return self.trace, [e for e,_,_ in ends], [f for _,fs,_ in ends for f in fs] + mess, [n for _,_,n in ends]

def compare(stage, play):
    "Describe how the loop differs from the oracle; None if it does not"
    trace,ends,errs = predict(play)
    try: got,got_ends,mess,notes = stage.perform(play)
    except Endless: return 'does not end'
    if got != trace:
        i = next((i for i,(a,b) in enumerate(zip(got, trace)) if a != b), min(len(got), len(trace)))
        return f'after {[t[:2] for t in got[max(i-3,0):i]]}\n   loop   {got[i:i+3]}\n   oracle {trace[i:i+3]}'
    if got_ends != ends: return f'loop ends with {got_ends}, oracle with {ends}'
    lost = [e for errs,note in zip(errs, notes) for e in errs if any(w not in note for w in (*e[:2], e[2].__name__))]
    if lost: return f'no note tells of these errors of after_exception and cleanup: {lost}'
    if mess: return f'left behind: {mess}'

# The least number of plays in a turn
LEAST = {'fit matrix':200, 'fit relatives':240, 'fit sources':170, 'fit cleanup':50, 'everything on':190, 'inner runs':110,
         'fresh':40, 'metric':60, **{f'{kind} {what}': n for kind in ('validate', 'predict')
             for what,n in dict(matrix=90, relatives=55, sources=33, cleanup=50).items()}}

def sweep(name, plays, turn=None, fresh=False, **kw):
    """Compare all `plays`, or every fifth from `turn` on, on one Learner, replaced after a difference: later plays show
    what a run broke"""
    stage,bad,n = Stage(**kw),[],0
    for play in plays if turn is None else itertools.islice(plays, turn, None, 5):
        n += 1
        wrong = compare(stage, play)
        if wrong: bad.append(f'{story(play)}: {wrong}')
        if wrong or fresh: stage = Stage(**kw)
    CASES[name] += n
    assert turn is None or n >= LEAST[name], f'only {n} plays'
    assert not bad, f'{len(bad)} of {n} plays differ\n' + '\n'.join(bad[:12])

def story(play):
    acts = [repr(p) for p in play.parts] + [f'{s} call {k}: {e.__name__}' for (s,k),e in play.faults.items()]
    return f'{play.runs} on {play.n_train}+{play.n_valid} batches, {", ".join(acts)}'

# plain runs, listed explicitly
END = ['before_fetch', 'after_exhaust']
VALIDATE = ['before_validate', *VALID*2, *END, 'after_validate']
EPOCH = ['before_epoch', 'before_train', *TRAIN*3, *END, 'after_train', *VALIDATE, 'after_epoch']
ALONE = ['before_fit', 'before_epoch', *VALIDATE, 'after_epoch', 'after_fit']
PLAIN = {('fit',2):     ['before_fit', *EPOCH*2, 'after_fit', 'cleanup'],
         ('fit',0):     ['before_fit', 'after_fit', 'cleanup'],
         ('validate',): ['before_evaluate', *ALONE, 'after_evaluate', 'cleanup'],
         ('predict',):  ['before_predict',  *ALONE, 'after_predict',  'cleanup']}

def golden(run, expect, acts={}, valid=True, **kw):
    play = Play((run,), [Part('A', acts=acts, **kw)], n_train=3, n_valid=2 if valid else None)
    CASES['golden'] += 1
    stage = Stage(valid=valid)
    assert [t[1] for t in predict(play)[0]] == expect
    assert compare(stage, play) is None
    return [t[1:] for t in stage.trace]

@pytest.mark.parametrize('run', PLAIN, ids=str)
def test_plain(run): golden(run, PLAIN[run])

def test_without_valid():
    epoch = ['before_epoch', 'before_train', *TRAIN*3, *END, 'after_train', 'after_epoch']
    golden(('fit',2), ['before_fit', *epoch*2, 'after_fit', 'cleanup'], valid=False)

# The events of a fit at which a callback calls `validate` or `get_preds`
CALLS = [(ev,0) for ev in '''before_fit before_train before_fetch after_pred after_backward after_batch before_validate
    after_epoch after_fit after_exception cleanup'''.split()] + [('after_batch',3)]

@pytest.mark.parametrize('kind', ['validate', 'predict'])
def test_inside_a_fit(kind):
    "Called by a callback, validate and get_preds fire only the events of a validation, not those of a run"
    plain = PLAIN['fit',2]
    for ev,k in CALLS:
        if ev == 'after_exception': continue
        i = [i for i,e in enumerate(plain) if e == ev][k]+1
        trace = golden(('fit',2), plain[:i] + VALIDATE + plain[i:], {(ev,k): (kind,)})
        assert {t[1] for t in trace[i:i+len(VALIDATE)]} == {kind}
        assert {t[1] for t in trace[:i]+trace[i+len(VALIDATE):]} == {'fit'}

def test_inside_inference():
    for run,kind in itertools.product([('validate',), ('predict',)], ['validate', 'predict']):
        plain = PLAIN[run]
        golden(run, plain[:9] + VALIDATE + plain[9:], {(plain[8], 0): (kind,)})

def test_fit_inside_a_run_raises():
    for run in [('fit',2), ('validate',), ('predict',)]:
        for ev in ['before_fit', 'after_batch', 'after_epoch']:
            i = PLAIN[run].index(ev)+1
            golden(run, PLAIN[run][:i] + ['after_exception', 'cleanup'], {(ev,0): ('fit',)})

# every exception at every event
RUNS = {'fit': ('fit',2), 'validate': ('validate',), 'predict': ('predict',)}
BELOW,EQUAL,ABOVE = -99,70,99

def trio(order, acts):
    "Two callbacks that only record, first and last, and one that acts; with equal order it comes before the last"
    return [Part('Low', -50), Part('Raiser', order, acts), Part('High', EQUAL)]

def positions(kind):
    "Every event of the plain run, each with the number of its earlier occurrences"
    trace,seen = predict(Play((RUNS[kind],), [Part('Raiser')]))[0],Counter()
    for _,ev,*_ in trace:
        yield ev,seen[ev]
        seen[ev] += 1

def then(e):
    "The runs after an error, to check that the Learner still works (after no error, the next play checks it)"
    return (('fit',1),('validate',)) if e in ERRORS else (('validate',),)

EACH = [*CANCELS.values(), BOTH, *ERRORS]
# every fifth play, each time with a different offset; 5 divides neither 8 nor 13, the numbers of exceptions
TURNS = [0, *slow(1, 2, 3, 4)]

@few(1, 3)
@pytest.mark.parametrize('kind', RUNS)
@pytest.mark.parametrize('order', [BELOW, EQUAL, ABOVE], ids=['below', 'equal', 'above'])
@pytest.mark.parametrize('turn', TURNS)
def test_each_raised_everywhere(kind, order, turn):
    "Every exception at every event, in three orders; in a fit, orders equal and above alternate to save time"
    some = lambda i: slice(None) if kind != 'fit' or order == BELOW else slice((i + (order==ABOVE))%2, None, 2)
    plays = (Play((RUNS[kind],), trio(order, {at: ('raise', e)}), then(e))
             for i,at in enumerate(positions(kind)) for e in EACH[some(i)])
    sweep(f'{kind} matrix', plays, turn)

@few(0, 2)
@pytest.mark.parametrize('kind', RUNS)
@pytest.mark.parametrize('turn', TURNS)
def test_every_kind_of_cancel(kind, turn):
    "The variants of every Cancel, alternating over the events"
    count = itertools.count()
    plays = (Play((RUNS[kind],), trio(0, {at: ('raise', vs[next(count)%len(vs)])}), (('validate',),))
             for at in positions(kind) for vs in VARIANTS)
    sweep(f'{kind} relatives', plays, turn)

@pytest.mark.parametrize('kind', RUNS)
@pytest.mark.parametrize('turn', TURNS)
def test_each_raised_in_a_first_run(kind, turn):
    "An exception before a Learner's first batch, when some attributes have never been set, is handled like any other"
    first = list(positions(kind))
    first = first[:[ev for ev,_ in first].index('after_batch')+1]
    plays  = [Play((RUNS[kind],), trio(BELOW, {at: ('raise', e)}), then(e), 1, 1) for at in first for e in EACH]
    plays += [Play((RUNS[kind],), trio(0, {}), then(e), 1, 1, {(src,0): e})
              for src in ('iter', 'data', 'model', 'loss') for e in EACH if (src,e) != ('data',StopIteration)]
    sweep('fresh', plays, turn, fresh=True)

@pytest.mark.parametrize('turn', TURNS)
def test_with_everything_on(turn):
    "The progress bar and metrics, which handle the same events, keep working when other callbacks raise"
    at = [(k,p) for k in RUNS for p in positions(k)]
    plays = (Play((RUNS[k],), trio(order, {p: ('raise', e)}), then(e))
             for i,(k,p) in enumerate(at) for j,order in enumerate([BELOW, ABOVE]) for e in EACH[(i+3*j)%6::6])
    sweep('everything on', plays, turn, metric=True, progress=True)

@few(1, 3)
@pytest.mark.parametrize('kind', ['validate', 'predict'])
@pytest.mark.parametrize('caught', [False, True])
@pytest.mark.parametrize('turn', TURNS)
def test_each_raised_inside_an_inner_run(kind, caught, turn):
    "What an inner run does not handle reaches its caller, then the outer run, and leaves no state behind"
    def case(call, acts={}, e=None):
        if call[0] == 'after_exception': acts = acts | {('after_fit',0): ('raise', ValueError)}
        caller = Part('Caller', -20, {(call[0], min(call[1],1)): (kind, caught)})
        return Play((('fit',1),), [Part('Low', -50), caller, Part('Raiser', 0, acts), Part('High', 70)], then(e), 1, 1)
    def inner(call):
        "The events of the inner run that the raiser receives"
        seen = Counter()
        for name,ev,mode,*_ in predict(case(call))[0]:
            if name == 'Raiser' and mode == kind: yield ev,seen[ev]
            seen[ev] += name == 'Raiser'
    plays = (case(call, {at: ('raise', e)}, e) for i,call in enumerate(CALLS)
             for j,at in enumerate(itertools.islice(inner(call), len(VALID)+3)) for e in EACH[(i+j)%3::3])
    sweep('inner runs', plays, turn)

# exceptions of the data, the model, the loss, a metric …
@few(0, 2)
@pytest.mark.parametrize('kind', RUNS)
@pytest.mark.parametrize('turn', TURNS)
def test_raised_by_the_rest(kind, turn):
    o = Oracle(Play((), trio(0, {})))
    o.run(*RUNS[kind])
    plays = (Play((RUNS[kind],), trio(0, {}), then(e), faults={(src,k): e})
             for src,n in o.calls.items() if src != 'zero_grad' for k in range(n)
             for e in [*EACH, *VARIANTS[k%len(VARIANTS)][k%2::2]]
             if not (src == 'data' and e is StopIteration))  # a loader ends this way
    sweep(f'{kind} sources', plays, turn)

@pytest.mark.parametrize('turn', TURNS)
def test_raised_by_a_metric(turn):
    plays = (Play((RUNS[kind],), trio(order, {}), then(e), faults={('metric',k): e})
             for kind,n in [('fit',6), ('validate',3)] for order in [BELOW, ABOVE]
             for k in range(n) for e in [*EACH, *VARIANTS[k]])
    sweep('metric', plays, turn, metric=True)

def test_predictions_call_no_metric():
    sweep('metric', [Play((RUNS['predict'],), trio(0, {}), faults={})], metric=True)
    s = Stage(metric=True)
    s.perform(Play((RUNS['predict'],), []))
    assert s.calls['metric'] == 0

def test_a_generator_that_cancels_has_ended():
    class Once:
        def __len__(self): return 2
        def __iter__(self):
            yield torch.ones(1,1),torch.zeros(1,1)
            raise core.CancelBatch
    events = []
    cb = Callback(**{ev: lambda self, ev=ev: events.append(ev) for ev in FIRED})
    Learner(DataLoaders(Once()), nn.Linear(1,1), nn.functional.mse_loss, cbs=cb).fit(1)
    cancelled = ['before_fetch', 'after_cancel_batch', 'after_batch']
    assert events == ['before_fit', 'before_epoch', 'before_train', *TRAIN, *cancelled, *END,
                     'after_train', 'after_epoch', 'after_fit', 'cleanup']

# errors during cleanup
CAUSES = [{}, {('after_batch',1): ('raise', ValueError)}, {('before_fit',0): ('raise', KeyboardInterrupt)},
          {('after_pred',1): ('raise', CANCELS['fit'])}, {('after_epoch',0): ('raise', CANCELS['batch'])}]
FAILURES = [ZeroDivisionError, CANCELS['fit'], KeyboardInterrupt, CANCELS['batch'], StopIteration, VARIANTS[4][2]]

@few(1, 3)
@pytest.mark.parametrize('kind', RUNS)
@pytest.mark.parametrize('turn', TURNS)
def test_errors_while_cleaning_up(kind, turn):
    "If callbacks fail in after_exception or cleanup, all others still receive the event, and the first error is raised"
    subsets,errors = [set(s) for n in range(4) for s in itertools.combinations(range(3), n)],itertools.cycle(FAILURES)
    def play(cause, hurt, dirty):
        fail = ('after_exception',hurt),('cleanup',dirty)
        def fails(i): return {(ev,0): ('raise', next(errors)) for ev,who in fail if i in who}
        parts = [Part(f'P{i}', o, fails(i)) for i,o in enumerate([-50, 0, 0])] + [Part('Cause', 1, cause)]
        return Play((RUNS[kind][:1] + (1,)*(kind=='fit'),), parts, (('fit',1),('validate',)), n_train=1, n_valid=2)
    sweep(f'{kind} cleanup', (play(*p) for p in itertools.product(CAUSES, subsets, subsets) if p[0] or not p[1]), turn)

# random plays
EVENTS = st.sampled_from(FIRED) | st.sampled_from(FIT) | st.sampled_from(sorted({*FIT} - {*IN_BATCH}))
RAISED = st.sampled_from([*CANCELS.values(), *CANCELS.values(), BOTH, *ERRORS, *itertools.chain(*VARIANTS)])
ORDERS = st.sampled_from([BELOW, -10, 0, 0, 50, ABOVE])
MODES  = st.one_of(*[st.just(Part.modes)]*3, st.sets(st.sampled_from(['fit','validate','predict'])).map(tuple))

SOURCES = st.tuples(st.sampled_from(['iter', 'data', 'model', 'loss', 'backward', 'step']), st.integers(0,8))
WHICH   = st.sampled_from([0, 0, 0, 1, 1, 2, 3])
OFTEN   = st.sampled_from([True, True, True, False])

@st.composite
def plays(draw):
    names = iter('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
    def act(depth):
        what = draw(st.sampled_from('raise raise validate predict fit remove mute add'.split()[:8-(depth>1)]))
        if what == 'raise': return what,draw(RAISED)
        if what == 'add':   return what,part(depth+1)
        if what in ('validate', 'predict'): return what,not draw(OFTEN)
        return (what,) if what == 'fit' else (what,draw(st.sampled_from('ABC')))
    def part(depth=0):
        name = next(names)
        acts = {(draw(EVENTS), draw(WHICH)): act(depth) for _ in range(draw(st.integers(0,4)))}
        skipped = draw(st.just(set()) | st.sets(st.sampled_from(FIRED))) - {ev for ev,_ in acts}
        handles = tuple(ev for ev in FIRED if ev not in skipped)
        return Part(name, draw(ORDERS), acts, draw(OFTEN), draw(OFTEN), draw(MODES), handles)
    runs = st.sampled_from([('fit',0), *[('fit',1),('fit',2)]*3, ('validate',), ('predict',)])
    faults = draw(st.dictionaries(SOURCES, RAISED, max_size=1))
    return Play(tuple(draw(st.lists(runs, min_size=1, max_size=3))), [part() for _ in range(draw(st.integers(2,4)))],
                n_train=draw(st.integers(1,3)), n_valid=draw(st.integers(1,2)),
                faults={at: e for at,e in faults.items() if (at[0],e) != ('data',StopIteration)})

def random_plays(n):
    return settings(max_examples=n, deadline=None, suppress_health_check=[*HealthCheck])

@random_plays(50)
@given(plays())
def test_random_plays(play):
    CASES['random'] += 1
    wrong = compare(Stage(), play)
    assert wrong is None, f'{story(play)}: {wrong}'

test_many_random_plays = pytest.mark.slow(random_plays(800 if 'LEARNKIT_SWEEP' in os.environ else 400)(given(plays())(test_random_plays.hypothesis.inner_test)))

# which callbacks receive an event
def received(runs=(('fit',1),), n=1, **kw):
    "The events that a single callback receives in a small play; the oracle must agree"
    play = Play(runs, [Part('A', **kw)], n_train=n, n_valid=n)
    stage = Stage()
    assert compare(stage, play) is None
    CASES['listening'] += 1
    return [t[1] for t in stage.trace]

def test_run_train_and_run_valid():
    outer = [ev for ev in PLAIN['fit',2] if ev not in IN_BATCH][:9] + ['after_fit', 'cleanup']
    train,valid = [*TRAIN, 'before_fetch'],[*VALID, 'before_fetch']
    assert received(run_valid=False) == outer[:3] + train + outer[3:]
    assert received(run_train=False) == outer[:6] + valid + outer[6:]
    assert received(run_train=False, run_valid=False) == outer

@pytest.mark.parametrize('phase', ['run_train', 'run_valid'])
@pytest.mark.parametrize('scope', ['batch', 'backward', 'step', 'zero_grad'])
def test_flags_hold_for_cancelled_scopes_too(phase, scope):
    parts = [Part('A', 0, {(f'before_{scope}', 0): ('raise', CANCELS[scope])}), Part('B', 1, **{phase: False})]
    sweep('listening', [Play((('fit',1),), parts)])

def test_modes():
    runs = ('fit',1),('validate',),('predict',)
    for mode in RUNS:
        assert received(runs, modes=(mode,)) == received([r for r in runs if r[0] == mode])
    inner = {('after_validate',0): ('validate',), ('after_epoch',0): ('predict',)}
    sweep('listening', [Play((('fit',1),), [Part('A', 0, inner), Part('B', 1, modes=(m,))]) for m in RUNS])

def test_muted_until_the_run_ends():
    runs = ('fit',1),('fit',1)
    for at in [('before_fit',0), ('after_batch',1), ('cleanup',0), ('after_fit',0)]:
        events = received(runs, acts={at: ('mute','A')})
        assert events[-len(received()):] == received()
    # an inner run does not unmute it; a run that ends in an error does
    acts = {('before_fit',0): ('mute','B'), ('after_batch',0): ('predict',), ('after_epoch',0): ('raise', ValueError)}
    sweep('listening', [Play(runs, [Part('A', 0, acts), Part('B', 1)])])

def test_muted_before_the_run():
    s = Stage()
    s.start(Play((), [Part('A')], n_train=1, n_valid=1))
    s.cast[0].run = False
    s.learn.fit(1)
    assert [t[1] for t in s.trace] == ['cleanup'] and s.cast[0].run   # cleanup is always called
    s.trace.clear()
    s.learn.fit(1)
    assert [t[1] for t in s.trace] == received()

def test_added_and_removed():
    "An added callback receives events from the next one on; a removed one receives only its own cleanup"
    at = [('before_fit',0), ('before_batch',1), ('after_loss',2), ('after_epoch',0), ('cleanup',0)]
    acts = [lambda o: ('add', Part('C', o)), lambda o: ('remove', 'B'), lambda o: ('remove', 'A')]
    sweep('listening', [Play((('fit',2),('fit',1)), [Part('A', 0, {p: act(o)}), Part('B', o)])
                        for p in at for act in acts for o in [-1, 0, 1]])

def test_temporary_callbacks():
    "They receive all events of the run, cleanup included, and are removed afterwards, even after errors or a removal"
    s = Stage()
    for cls,act in [(None, ()), (None, ('remove','A')), (ValueError, ('raise',ValueError))]:
        s.start(Play((), [], n_train=1, n_valid=1))
        s.cast = [actor(Part('A', acts={('after_batch',0): act} if act else {}), s)]
        try: s.learn.fit(1, cbs=s.cast)
        except ValueError: assert cls is ValueError
        else: assert cls is None
        events = [t[1] for t in s.trace]
        assert events[0] == 'before_fit' and events[-1] == 'cleanup'
        assert s.cast[0] not in s.learn.cbs and s.state() == s.before

def test_call_is_called_for_every_event():
    "A callback may override `__call__`; one made of functions receives the same events"
    events,by_functions = [],[]
    class All(Callback):
        def __call__(self, ev): events.append(ev)
    fs = Callback(**{ev: lambda self, ev=ev: by_functions.append(ev) for ev in FIRED})
    s = Stage(cbs=[All(), fs])
    s.perform(Play((('fit',2),('validate',),('predict',)), [], n_train=3, n_valid=2))
    assert 'after_read_losses' in events   # fired by the Recorder, not by the loop
    assert [ev for ev in events if ev!='after_read_losses'] == ['after_create', *by_functions]
    assert by_functions == PLAIN['fit',2] + PLAIN['validate',] + PLAIN['predict',]

def test_after_create_is_only_for_callbacks_of_the_constructor():
    events = []
    cb = lambda name: Callback(after_create=lambda self: events.append(name))
    s = Stage(cbs=cb('early'))
    s.learn.add_cb(cb('late'))
    s.perform(Play((('fit',1),), []))
    assert events == ['early']

# names and messages
def test_the_names():
    assert set(FIRED+IDLE) <= set(event)
    for name,scope in SCOPES.items():
        assert issubclass(CANCELS[scope], core.Cancel) and issubclass(core.Cancel, Exception)
        assert getattr(core, f'{name}Exception') is CANCELS[scope]
        assert CANCELS[scope]().args  # code that reads e.args[0] must not break

def test_every_event_is_handled():
    "Each event of the design fires in these runs, and no other"
    s = Stage()
    acts = {(f'before_{scope}', 0): ('raise', cls) for scope,cls in CANCELS.items() if scope != 'batch'}
    acts |= {('before_pred', 0): ('raise', CANCELS['batch']), ('after_fit', 1): ('raise', ValueError)}
    once = [{at: act} for at,act in acts.items()]
    events = set()
    class All(Callback):
        def __call__(self, ev): events.add(ev)
    s.learn.add_cb(All())
    for a in once: s.perform(Play((('fit',2),('fit',1),('validate',),('predict',)), [Part('A', acts=a)]))
    assert events == {*FIRED, 'after_read_losses'}   # the last one is fired by the Recorder

def test_the_printed_loop(capsys):
    "`show_training_loop` lists the events of a fit in the order in which they fire"
    text = Stage(progress=True).learn.show_training_loop() or ''
    found = [w for w in re.findall(r'\w+', str(text) + capsys.readouterr().out) if w in FIT]
    assert list(dict.fromkeys(found)) == FIT

@pytest.mark.parametrize('meant', FIRED)
def test_a_typo_is_corrected(meant):
    typo = meant[:-3] + meant[-2] + meant[-3] + meant[-1]
    with pytest.raises((ValueError, AttributeError), match=meant): Stage().learn(typo)

def test_an_error_stays_what_it_is():
    "An error keeps its identity, arguments and traceback; the epoch, batch and callback are added as a note"
    boom = KeyError('x', 3)
    class Fails(Callback):
        def after_loss(self):
            if self.training and (self.epoch, self.iter) == (1,2): raise boom
    with pytest.raises(KeyError) as info: Stage(cbs=Fails()).learn.fit(2)
    assert info.value is boom and boom.args == ('x', 3)
    assert info.traceback[-1].name == 'after_loss'
    note, = boom.__notes__
    assert 'Fails' in note and 'after_loss' in note
    assert re.search(r'epoch\W*1\b', note) and re.search(r'(batch|iter\w*)\W*2\b', note)

def test_a_lost_cancel_is_explained():
    class Lost(Callback):
        def before_validate(self): raise core.CancelTrain
    with pytest.raises(RuntimeError) as info: Stage(cbs=Lost()).learn.fit(1)
    assert type(info.value.__cause__) is core.CancelTrain
    for word in ['CancelTrain', 'train', 'before_validate', 'Lost']: assert word in str(info.value)

def test_without_targets():
    "Without targets the loss events fire, but those of backward and step do not"
    events = []
    cb = Callback(**{ev: lambda self, ev=ev: events.append(ev) for ev in FIRED})
    Learner(DataLoaders(*[[torch.ones(1,1)]*2]*2), nn.Linear(1,1), nn.functional.mse_loss, cbs=cb).fit(1)
    assert events == ['before_fit', 'before_epoch', 'before_train', *VALID*2, *END, 'after_train', *VALIDATE,
                     'after_epoch', 'after_fit', 'cleanup']

@pytest.mark.slow
def test_enough_cases():
    "The whole file compares at least this many plays; in parallel runs each turn checks its own number (`LEAST`)"
    if len(CASES) < 15 or 'PYTEST_XDIST_WORKER' in os.environ: pytest.skip('not all tests ran in this process')
    assert sum(CASES.values()) > (10_000 if os.environ.get('LEARNKIT_SWEEP') else 7_000)
