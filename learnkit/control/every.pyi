# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""How often is a word: '2ep', '500ba', '10000sp', '0.1dur', '30m'"""
from collections.abc import Callable
from ..callback import Callback
from ..recorder import History
from typing import Any

__all__ = ['parse_time', 'parse_every', 'Every', 'EveryCallback', 'ValidateEvery']
_whole: tuple[Any, ...]
_seconds: dict[Any, Any]
_units: tuple[Any, ...]
_long: dict[Any, Any]
_how: str
_number: str
_clock: Any
def parse_time(time: str) -> tuple[Any, ...]|None:
    """`(value, unit)`: a number with one of 'ep ba sp tok dur s m h'; None if the text is nothing of that kind

    Args:
        time: text such as '500ba' or '1h30m'
    """
    ...
def parse_every(every: Any) -> tuple[Any, ...]:
    """`(value, unit)`: a number with one of 'ep ba sp tok dur s m h', a function with 'call', or None with None

    Args:
        every: text such as '500ba', a `Time`, a number of epochs, a function of the Learner, or None
    """
    ...
def _hint(every: Any) -> Any: ...
def find_tokens(b: Any, dls: Any = None) -> int:
    """The number of tokens in the batch `b`

    Args:
        b: a batch
        dls: the data; its `n_tokens(batch)` is asked if it has one
    """
    ...
class Every:
    """Says when it is time again: every 2 epochs ('2ep'), 500 batches ('500ba'), tenth of the run ('0.1dur'), half hour ('30m')"""
    spec: Any
    value: Any
    unit: Any
    count: Any
    times: Any
    since: Any
    loaded: bool
    def __init__(self, every: Any = None) -> None:
        """Says when it is time again: every 2 epochs ('2ep'), 500 batches ('500ba'), tenth of the run ('0.1dur'), half hour ('30m')

        Args:
            every: text such as '500ba', a number of epochs, a function of the Learner, another `Every`, or None for never
        """
        ...
    def __bool__(self) -> bool: ...
    @property
    def in_batches(self) -> bool:
        """Can it be due within an epoch? If not, there is no need to ask at the end of each batch."""
        ...
    def __repr__(self) -> str: ...
    def reset(self) -> None:
        """Begin to count anew"""
        ...
    def start(self, learn: Any) -> None:
        """A fit begins: count anew, unless `load_state_dict` was called for it; raises ValueError if it could never be due"""
        ...
    def __call__(self, learn: Any, epoch: bool = False) -> bool:
        """Is it due?

        Args:
            learn: the Learner, in a fit
            epoch: is it the end of an epoch? Else that of a training batch
        """
        ...
    def _times(self, amount: Any) -> Any: ...
    def _before(self, learn: Any) -> Any:
        """How much was done before this epoch by a run that begins with it"""
        ...
    def _so_far(self, learn: Any) -> Any: ...
    @property
    def elapsed(self) -> float:
        """Seconds of training so far"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """How far the count is"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on from where the count was; the next `start` leaves it so"""
        ...
class EveryCallback(Callback):
    """Calls `f(learn)` whenever it is due"""
    order: int
    run_valid: bool
    modes: tuple[Any, ...]
    saves: tuple[Any, ...]
    f: Callable[..., Any]
    every: Every
    def __init__(self, f: Callable[..., Any], every: Any = '1ep') -> None:
        """Calls `f(learn)` whenever it is due

        Args:
            f: function of the Learner
            every: how often: text such as '500ba', a number of epochs, a function of the Learner, or None for never
        """
        ...
    def set_every(self, every: Any) -> None:
        """How often; with whole epochs the batches are not listened to"""
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def act(self) -> None:
        """What is to be done"""
        ...
class ValidateEvery(EveryCallback):
    """Validates within the fit whenever it is due, and records a row"""
    saves: tuple[Any, ...]
    history: History
    ds_idx: int
    dl: Any
    first: Any
    def __init__(self, every: Any, ds_idx: int = 1, dl: Any = None) -> None:
        """Validates within the fit whenever it is due, and records a row

        Args:
            every: how often: text such as '500ba' or '30m', a number of epochs, or a function of the Learner
            ds_idx: which loader of `dls`
            dl: or this one
        """
        ...
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def act(self) -> None: ...
