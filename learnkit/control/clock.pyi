# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.time`: the epochs, batches, items, tokens and seconds that are done"""
from dataclasses import dataclass
from functools import total_ordering
from .stopwatch import StopwatchCallback
from ..duration import Time
from typing import Any

__all__ = ['Timestamp', 'Clock']
_fields: dict[Any, Any]
@total_ordering
@dataclass(frozen=True, eq=False)
class Timestamp:
    """How far a run is; compares with an amount of any unit, as in `learn.time >= '500ba'` (Composer's `Timestamp`)"""
    epoch: int
    """epochs that are done"""
    batch: int
    """training batches that are done"""
    sample: int
    """training items that are done, under Composer's name"""
    token: int|None
    """tokens that are done; None if the batches are not texts"""
    seconds: float
    """of training, without validation"""
    dur: float
    """fraction of the run, from 0 to 1"""
    batch_in_epoch: int
    """batches of this epoch"""
    sample_in_epoch: int
    """items of this epoch"""
    token_in_epoch: int|None
    """tokens of this epoch"""
    seconds_in_epoch: float
    """seconds of this epoch"""
    def __getitem__(self, unit: str) -> Time:
        """Return how much is done, in `unit`. Raises KeyError for an unknown unit, ValueError if tokens are not counted.

        Args:
            unit: 'ep', 'ba', 'sp', 'tok', 's' or 'dur'

        Raises:
            KeyError: there is no unit …: …
            ValueError: the tokens of this run are not counted, because its batches are not texts: put a function that …
        """
        ...
    def __eq__(self, o: Any) -> bool: ...
    def __lt__(self, o: Any) -> bool: ...
class Clock(StopwatchCallback):
    """Counts epochs, batches, items, tokens and seconds of training: `learn.time`"""
    loaded: bool
    counts: dict[Any, Any]
    began: Any
    def __init__(self) -> None: ...
    def _reset(self) -> None: ...
    def _now(self) -> dict[Any, Any]: ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _tokens(self, batch: Any, before: Any) -> Any: ...
    @property
    def time(self) -> Timestamp:
        """How far the run is"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`, in the fit that comes next

        Args:
            state: what `state_dict` returned
        """
        ...
