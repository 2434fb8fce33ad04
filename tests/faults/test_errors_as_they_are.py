"An exception leaves `fit` as the object that was raised, whatever its class and origin: no other error replaces it"
from traceback import format_exception

import pytest, torch
from torch import nn

from learnkit.all import *
from toys import at, few, learner

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings('ignore')

# exception classes that break conventions

class NoText(Exception):
    def __str__(self): raise ZeroDivisionError('in __str__')
    __repr__ = __str__
class OfArguments(Exception):
    "A `__str__` that needs arguments, as in many libraries, which unpickling loses"
    def __str__(self): return 'code %d: %s' % self.args
class TextOfNone(Exception):
    def __str__(self): return None   # noqa: PLE0307
class NotesOfItsOwn(Exception):
    __notes__ = None
class NoNotes(Exception):
    def add_note(self, text): raise ZeroDivisionError('in add_note')
class Frozen(Exception):
    "Read-only like a frozen dataclass, except for `__traceback__`, which Python's `contextlib` sets"
    def __setattr__(self, k, v):
        if k!='__traceback__': raise AttributeError(f'{k} is read-only')
        super().__setattr__(k, v)
class Slots(Exception):
    __slots__ = 'code',
class Members(Exception):
    exceptions = None
class Unequal(Exception):
    def __eq__(self, o): raise ZeroDivisionError('in __eq__')
    __hash__ = None
class Untrue(Exception):
    def __bool__(self): raise ZeroDivisionError('in __bool__')
class Traced(Exception):
    def with_traceback(self, tb): raise ZeroDivisionError('in with_traceback')
class Answers(Exception):
    "Has every attribute that is looked up"
    def __getattr__(self, k):
        if k[:2]=='__': raise AttributeError(k)
        return 3
class Interrupted(KeyboardInterrupt):
    def __str__(self): raise ZeroDivisionError('in __str__')

HOSTILE = [NoText, OfArguments, TextOfNone, NotesOfItsOwn, NoNotes, Frozen, Slots, Members, Unequal, Untrue, Traced, Answers, Interrupted]

# places where they are raised
class Raised:
    "Holds the next exception: as an attribute of a Learner it would be described in the identity of the run"
    e = None
def raise_it(*args, **kw): raise Raised.e

class Raises(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Linear(4, 1)
    forward = raise_it
class RaisesBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g): raise_it()
def backward_loss(pred, y): return RaisesBackward.apply(pred).mean()
def data():
    yield torch.ones(2, 4),torch.ones(2, 1)
    raise_it()
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    __getitem__ = raise_it
class FailingStep(torch.optim.SGD): step = raise_it

EVENTS = 'before_fit','before_batch','after_loss','after_epoch','after_fit','cleanup'
PLACES = dict(
    model    = lambda: learner(model=Raises()),
    loss     = lambda: learner(loss_func=raise_it),
    backward = lambda: learner(loss_func=backward_loss),
    metric   = lambda: learner(metrics=raise_it),
    data     = lambda: learner(dls=DataLoaders(data)),
    dataset  = lambda: learner(dls=DataLoaders(torch.utils.data.DataLoader(Data(), 4))),
    step     = lambda: learner(opt_func=FailingStep),
    **{ev: lambda ev=ev: learner(cbs=at(ev, raise_it)) for ev in EVENTS},
)
OTHERS = dict(none=lambda p: [], tools=lambda p: [CheckpointCallback('1ba', folder=p/'c'), SkipNaN(), EMACallback(.9), ItemIndices(), StopOnSignal(), ReplayOnOOM()],
              monitors=lambda p: [CSVLogger(p/'l.csv'), JsonLogger(p/'l.json'), Pausable(), GradientAccumulation(8)])

def caught(f):
    "The exception that `f()` raises"
    try: f()
    except BaseException as e: return e

@few(24, 26)
@pytest.mark.parametrize('others', OTHERS)
@pytest.mark.parametrize('place', PLACES)
@pytest.mark.parametrize('cls', HOSTILE, ids=lambda c: c.__name__)
def test_fit_raises_the_same_exception_object(cls, place, others, tmp_path):
    Raised.e = e = cls()
    learn = PLACES[place]()
    learn.add_cbs(OTHERS[others](tmp_path))
    arrived = caught(lambda: learn.fit(1))
    assert arrived is e, ''.join(format_exception(arrived))[-1500:]
    assert learn.mode is None
