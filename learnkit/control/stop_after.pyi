# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Stop the fit after a number of batches, items or epochs, or after a time: 500 batches, 30 minutes"""
from .every_callback import EveryCallback
from typing import Any

__all__ = ['StopAfter']
class StopAfter(EveryCallback):
    """Ends the fit when a budget of batches, items, epochs or time is used up; ValueError for one that never is.

    Batches are not steps of the optimizer: with `GradientAccumulation` a step takes several of them.
    """
    together: bool
    much: Any
    def __init__(self, much: Any) -> None:
        """Ends the fit when a budget of batches, items, epochs or time is used up; ValueError for one that never is.

        Batches are not steps of the optimizer: with `GradientAccumulation` a step takes several of them.

        Args:
            much: the budget: a number of training batches, text such as '30m', '1e6sp' or '3ep', or a `Time`

        Raises:
            ValueError: StopAfter(…) would never stop: give a budget such as 500 (batches) or '30m'
        """
        ...
    def act(self) -> None: ...
