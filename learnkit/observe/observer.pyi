# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Measures numbers of a run at intervals, keeps them as rows, and passes them to the loggers"""
from ..control.every_callback import EveryCallback
from ..history import History
from typing import Any

__all__ = ['Observer', 'LossMonitor', 'LRMonitor']
class Observer(EveryCallback):
    """Base class of monitors: measures at intervals, keeps the numbers as rows of `history`, and logs them"""
    rows: History
    def __init__(self, every: Any = '10ba') -> None:
        """Base class of monitors: measures at intervals, keeps the numbers as rows of `history`, and logs them

        Args:
            every: how often: text such as '10ba', a `Time`, a number of epochs, or a function of the Learner
        """
        ...
    def measure(self) -> dict[Any, Any]|None:
        """Return the numbers of now; raises NotImplementedError unless a subclass defines it

        Raises:
            NotImplementedError: … needs a method `measure` that returns a dict of numbers
        """
        ...
    def before_fit(self) -> None: ...
    def act(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    after_exception = after_fit
    before_save_checkpoint = after_fit
    def cleanup(self) -> None: ...
    def log(self, metrics: dict[Any, Any]|None) -> None:
        """Add a row of `metrics`; tensors are read from the device later

        Args:
            metrics: numbers by name; None or an empty dictionary logs nothing
        """
        ...
    def _keep(self, rows: Any, epoch: Any, train_iter: Any, metrics: Any) -> None: ...
    def flush(self) -> None:
        """Read all rows that wait from the device at once, and announce them"""
        ...
    @property
    def history(self) -> History:
        """All rows measured so far; reads from the device those that wait"""
        ...
class LossMonitor(Observer):
    """Logs the training loss of single batches, not smoothed, as `batch_loss`"""
    def measure(self) -> dict[Any, Any]:
        """Return the loss, still on its device

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
class LRMonitor(Observer):
    """Logs the learning rate of each parameter group, and its momentum if it has one"""
    def measure(self) -> dict[Any, Any]:
        """Return `lr` and `mom`; with several parameter groups `lr/0`, `lr/1`, …

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
