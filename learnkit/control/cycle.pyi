# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Divide a fit into cycles of any length, and fire events at points where the run can be saved or stopped"""
from ..callback import Callback
from .every import Every
from typing import Any

__all__ = ['CheckpointEvents', 'Cycles']
class CheckpointEvents(Callback):
    """Fires `batch_checkpoint` and `epoch_checkpoint`, when all callbacks have seen the batch or the epoch"""
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
class Cycles(Callback):
    """Divides a fit into cycles: fires `before_cycle`, `after_cycle` and `cycle_checkpoint`, and counts `learn.cycle`"""
    every: Every
    n: int
    inside: bool
    def __init__(self, every: Any) -> None:
        """Divides a fit into cycles: fires `before_cycle`, `after_cycle` and `cycle_checkpoint`, and counts `learn.cycle`

        Args:
            every: the length of a cycle, as for `Every`: '500ba', '10000sp', '2ep', '0.25dur', …

        Raises:
            ValueError: a cycle must have a length, such as '500ba' or '2ep'
        """
        ...
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def after_fetch(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def _begin(self) -> None: ...
    def _end(self, complete: Any) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue in the cycle of `state`

        Args:
            state: what `state_dict` returned
        """
        ...
