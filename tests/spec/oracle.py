"""An oracle for the loop: it predicts every event of a run.

The loop is controlled by Python's exceptions. The oracle raises none: a run is a walk through scopes that returns the
exception in flight as a plain value (a `Flight`, or None if there is none). It was written from the design alone and
shares no code with the loop. A `Play` lists the callbacks and the failures; `predict` returns the events that each
callback must receive."""
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple
from unittest.mock import ANY

# A batch as in the design: its events, and in brackets what is called. In training, three more scopes follow
BATCH = 'before_fetch [fetch] after_fetch before_batch before_pred [model] after_pred before_loss [loss] after_loss'.split()
UPDATES = 'backward','step','zero_grad'

# Every event of a run, in the order of the design
VALID = [*(e for e in BATCH if e[0]!='['), 'after_batch']                                       # a validation batch
TRAIN = [*VALID[:-1], *(f'{at}_{s}' for s in UPDATES for at in ('before','after')), 'after_batch']   # a training batch
IN_BATCH = [*VALID[:-1], *(f'{at}_{s}' for s in UPDATES for at in ('before','after_cancel','after')), 'after_cancel_batch', 'after_batch']
FIT = ['before_fit', 'before_epoch', 'before_train', *IN_BATCH, 'after_exhaust', 'after_cancel_train', 'after_train', 'before_validate',
       'after_cancel_validate', 'after_validate', 'after_cancel_epoch', 'after_epoch', 'after_cancel_fit', 'after_fit']
FIRED = ['before_evaluate', 'before_predict', *FIT, 'after_evaluate', 'after_predict', 'after_exception', 'cleanup']
IDLE = 'after_create before_save_model after_save_model before_load_model after_load_model'.split()

# The scope that each Cancel ends
SCOPES = dict(CancelBatch='batch', CancelTrain='train', CancelValid='validate', CancelEpoch='epoch', CancelFit='fit',
              CancelBackward='backward', CancelStep='step', CancelZeroGrad='zero_grad')

def scopes(cls):
    "The scopes that an exception of type `cls` ends: matched by name, so that other libraries' Cancels count"
    names = (c.__name__.removesuffix('Exception') for c in cls.__mro__)
    return frozenset(SCOPES[n] for n in names if n in SCOPES)

class Flight(NamedTuple):
    "An exception that propagates"
    cls: type           # what was raised
    ends: frozenset     # the scopes it ends; empty unless it is a Cancel

def flight(cls): return Flight(cls, scopes(cls))

END = Flight(None, frozenset())  # the loader is exhausted

@dataclass(repr=False)
class Part:
    """A callback of a play. `acts` maps (event, how many times it was received before) to what the callback does:
    ('raise', cls), ('add', Part), ('remove', name), ('mute', name), ('fit',), ('validate',), ('predict',), or
    ('validate', True) to catch any exception of the inner run"""
    name: str
    order: int = 0
    acts: dict = field(default_factory=dict)
    run_train: bool = True
    run_valid: bool = True
    modes: tuple = ('fit', 'validate', 'predict', 'lr_find', 'sanity')
    handles: tuple = tuple(FIRED)

    def __repr__(self):
        "Show only what differs from a callback that does nothing"
        flags = [f'{k}={v}' for k in ('run_train','run_valid','modes') if (v := getattr(self, k)) != getattr(Part, k)]
        flags += [f'skips {set(FIRED) - set(self.handles)}'] if len(self.handles) < len(FIRED) else []
        say = lambda act: ' '.join(getattr(a, '__name__', str(a)) for a in act)
        acts = [f'{ev}#{k}: {say(act)}' for (ev,k),act in self.acts.items()]
        return f'{self.name}({", ".join([str(self.order), *flags, *acts])})'

@dataclass
class Play:
    "The runs, the callbacks, and the calls of data, model, loss … that fail: `faults[source, which call] = exception`"
    runs: tuple            # ('fit', 2), ('validate',), ('predict',)
    parts: list
    then: tuple = ()       # runs after one that ended in an error, to check that the Learner still works
    n_train: int = 3
    n_valid: int|None = 3
    faults: dict = field(default_factory=dict)

class Oracle:
    def __init__(self, play):
        self.play,self.cast,self.trace = play,list(play.parts),[]
        self.mode = self.training = self.exc = None
        self.switched = False   # whether `TrainEvalCallback`, of order -10, has set `learn.training`
        self.n_received,self.calls,self.muted,self.errors = Counter(),Counter(),set(),[]
        # The Recorder calls the metrics: it is not in the trace, but it is a callback like any other
        acts = {('after_batch', k): ('raise', e) for (src,k),e in play.faults.items() if src == 'metric'}
        recorder = Part(None, 50, acts, run_train=False, modes=('fit','validate'), handles=('after_batch',))
        if acts: self.cast.insert(0, recorder)

    # A single event
    def skips(self, part, ev):
        return (ev not in part.handles or ev != 'cleanup' and part.name in self.muted or self.mode not in part.modes
                or ev in IN_BATCH and not (part.run_train if self.training else part.run_valid))

    def receive(self, part, ev):
        k = self.n_received[part.name,ev]
        self.n_received[part.name,ev] += 1
        training = self.training if ev in IN_BATCH else None
        if part.name: self.trace.append((part.name, ev, self.mode, training, self.exc))
        return self.act(*part.acts.get((ev,k), (None,)))

    def act(self, what, arg=None):
        if   what == 'raise':    return flight(arg)
        elif what == 'fit':      return flight(RuntimeError)
        elif what in ('validate', 'predict'):
            fly = self.inner(what)
            if not arg: return fly  # else the handler catches it
        elif what == 'add':      return self.add(arg)
        elif what == 'remove':   return self.remove(arg)
        elif what == 'mute':     self.muted |= {p.name for p in self.cast if p.name == arg}

    def add(self, part):
        "Add a callback: during a fit it is set up at once; if that fails, it is removed, and receives its `cleanup`"
        self.cast.append(part)
        if self.mode != 'fit': return
        for ev in ('before_fit', *['before_train'] * self.switched):
            if part not in self.cast: return   # it has removed itself
            if self.skips(part, ev): continue
            if fly := self.receive(part, ev):
                self.discard(part)
                return fly

    def discard(self, part):
        "Remove a callback whose set-up failed; an error in its `cleanup` is only noted"
        if part not in self.cast: return
        self.cast = [p for p in self.cast if p is not part]
        if not self.skips(part, 'cleanup'): self.receive(part, 'cleanup')

    def remove(self, name):
        "Remove callbacks one by one; each receives its `cleanup`"
        for part in [p for p in self.cast if p.name == name]:
            self.cast = [p for p in self.cast if p is not part]
            if not self.skips(part, 'cleanup') and (fly := self.receive(part, 'cleanup')): return fly

    def deliver(self, ev, backwards=False):
        "Yield each callback that receives `ev`, with the resulting `Flight`"
        for part in sorted(self.cast, key=lambda p: p.order)[::-1 if backwards else 1]:
            if part.order >= -10: self.switch(ev)
            if part in self.cast and not self.skips(part, ev): yield part, self.receive(part, ev)

        self.switch(ev)

    def switch(self, ev):
        if ev in ('before_train', 'before_validate'): self.switched = ev == 'before_train'

    def send(self, ev, over=None):
        "Send `ev` to the callbacks until one fails. A Cancel of the scope that is already `over` is ignored"
        for _,fly in self.deliver(ev):
            if fly and over not in fly.ends: return fly

    def send_each(self, ev, backwards=False):
        "Send `ev` to every callback, even if others fail"
        for part,fly in self.deliver(ev, backwards):
            if fly:
                self.errors.append((part.name, ev, fly.cls))
                self.exc = self.exc or ANY  # the design does not specify whether `exc` shows a first error of cleanup

    # The shape of a run: a step is an event or a function
    def walk(self, *steps):
        for s in steps:
            fly = self.send(s) if isinstance(s, str) else s()
            if fly: return fly

    def scope(self, name, *steps):
        fly = self.walk(*steps)
        if fly and name in fly.ends: fly = self.send(f'after_cancel_{name}', over=name)
        return fly or self.send(f'after_{name}', over=name)

    def source(self, src):
        k = self.calls[src]
        self.calls[src] += 1
        if (src,k) in self.play.faults: return flight(self.play.faults[src,k])

    def batch(self, left):
        def fetch():
            if fly := self.source('data'): return fly
            if not left: return END
            left.pop()
        calls = {'[fetch]':fetch, '[model]':partial(self.source, 'model'), '[loss]':partial(self.source, 'loss')}
        def update(s): return partial(self.scope, s, f'before_{s}', partial(self.source, s))
        return self.scope('batch', *[calls.get(s, s) for s in BATCH], *map(update, UPDATES if self.training else ()))

    def batches(self, n, training):
        outer,self.training = self.training,training
        left,fly = [None]*n,self.source('iter')
        while not fly: fly = self.batch(left)
        self.training = outer
        return self.send('after_exhaust') if fly is END else fly

    def train(self):    return self.scope('train', 'before_train', lambda: self.batches(self.play.n_train, True))
    def validate(self): return self.scope('validate', 'before_validate', lambda: self.batches(self.play.n_valid, False))
    def epoch(self, *steps): return self.scope('epoch', 'before_epoch', *steps)
    def fit(self, *steps):   return self.scope('fit', 'before_fit', *steps)

    def inner(self, mode):
        "`learn.validate()` or `learn.get_preds()` called by a callback"
        outer,self.mode,self.exc = (self.mode,self.exc,self.switched),mode,self.exc and ANY
        fly = self.validate()
        self.mode,self.exc,self.switched = outer
        return fly

    def steps(self, kind, n=0):
        if kind == 'fit':
            phases = [self.train] if self.play.n_valid is None else [self.train, self.validate]
            return [lambda: self.fit(*[partial(self.epoch, *phases)]*n)]
        event = dict(validate='evaluate', predict='predict')[kind]
        return [f'before_{event}', lambda: self.fit(partial(self.epoch, self.validate)), f'after_{event}']

    def run(self, kind, n=0):
        "One outermost run: the type of the exception that the user sees, or None"
        self.mode,self.errors,self.switched = kind,[],False
        fly = self.walk(*self.steps(kind, n))
        self.exc = fly and (RuntimeError if fly.ends else fly.cls)  # a Cancel that found no scope is an error
        if fly: self.errors.append((None, None, self.exc))
        if fly: self.send_each('after_exception')
        self.send_each('cleanup', backwards=True)
        self.mode = self.exc = None
        self.muted.clear()
        if self.errors: return RuntimeError if scopes(self.errors[0][2]) else self.errors[0][2]

def predict(play):
    "The events that callbacks receive in `play`, the exception of each run, and the later errors of each run"
    o = Oracle(play)
    ends = [(o.run(*r), o.errors[1:]) for r in play.runs]
    if ends[-1][0]: ends += [(o.run(*r), o.errors[1:]) for r in play.then]
    return o.trace, [e for e,_ in ends], [errs for _,errs in ends]
