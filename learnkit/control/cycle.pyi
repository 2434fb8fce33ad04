# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A fit falls into epochs because the data set ends; it can fall into cycles for any other reason"""
from ..callback import Callback
from .every import Every
from typing import Any

__all__ = ['CheckpointEvents', 'Cycles']
class CheckpointEvents(Callback):
    """Fires `batch_checkpoint` and `epoch_checkpoint`"""
    order: int
    run_valid: bool
    modes: tuple[Any, ...]
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
class Cycles(Callback):
    """Divides a fit into cycles: fires `before_cycle`, `after_cycle` and `cycle_checkpoint`, counts `learn.cycle`"""
    order: int
    run_valid: bool
    modes: tuple[Any, ...]
    saves: tuple[Any, ...]
    every: Every
    n: int
    inside: bool
    def __init__(self, every: Any) -> None:
        """Divides a fit into cycles: fires `before_cycle`, `after_cycle` and `cycle_checkpoint`, counts `learn.cycle`

        Args:
            every: how long a cycle is: '500ba', '10000sp', '2ep', '0.25dur', …; see `Every`
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
        """Go on in the cycle that `state` was in"""
        ...
