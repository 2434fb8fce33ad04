# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`fit('2000ba')`: epochs, batches, items, tokens or hours of training, in as many epochs as that takes"""
from .callback import Callback
from .duration import Time
from typing import Any

__all__ = ['max_idle', 'as_duration', 'as_epochs', 'TrainFor']
def as_duration(much: Any) -> Time:
    """Return how long a fit is to be; raises ValueError if it is no such amount

    Args:
        much: a number of epochs, text such as '2000ba', or a `Time`

    Raises:
        ValueError: `n_epoch` must be a whole number, 0 or more
        ValueError: n_epoch must be a whole number, or an amount of training: …
        ValueError: a fit cannot be … long: write a number of epochs, or an amount such as '2000ba' or '30m'
    """
    ...
def as_epochs(t: Time, dl: Any) -> int:
    """Return how many epochs that is; 1 if the loader does not tell

    Args:
        t: how long the fit is
        dl: the training loader
    """
    ...
max_idle: int
class TrainFor(Callback):
    """Ends a fit after an amount of training, in as many epochs as that takes; `fit('2000ba')` adds it"""
    done: Any
    """how much is done, in the unit of the amount"""
    at: Any
    before: Any
    since: Any
    idle: Any
    fresh: bool
    left_out: Any
    much: Any
    total: Any
    unit: Any
    def __init__(self, much: str|Time) -> None:
        """Ends a fit after an amount of training, in as many epochs as that takes; `fit('2000ba')` adds it

        Args:
            much: the amount: '2000ba', '1e6sp', '3e8tok' or '30m'

        Raises:
            ValueError: for … epochs write `learn.fit(…)`
        """
        ...
    @property
    def amount(self) -> int|float:
        """How much is done by now, in the unit of the amount"""
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_batch(self) -> None: ...
    @property
    def pct(self) -> float:
        """The fraction that is done"""
        ...
    def after_epoch(self) -> None: ...
    def _leave_out(self) -> None:
        """Count the epochs before `start_epoch` as done

        Raises:
            ValueError: start_epoch=… leaves out epochs of a loader without a `len`, so nobody knows how many batches they …
        """
        ...
    def _count_off(self) -> None:
        """End this epoch at the last batch of the fit, if that is in it"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return how much is done"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`

        Args:
            state: what `state_dict` returned
        """
        ...
