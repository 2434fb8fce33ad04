# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Measures numbers of a run at intervals, keeps them as rows, and passes them to the loggers"""
import torch
from ..control.every_callback import EveryCallback
from ..history import History
from typing import Any

__all__ = ['Observer', 'LossMonitor', 'LRMonitor']
def stack_scalars(values: list[Any]|tuple[Any, ...]) -> torch.Tensor:
    """Return one tensor of all `values`, on the device of the first

    Args:
        values: tensors of one element each; they may be on several devices, as the parts of a model may

    Returns:
        of shape (len(values),)
    """
    ...
class Observer(EveryCallback):
    """Base class of monitors: measures at intervals, keeps the numbers as rows of `history`, announces `log_metrics`"""
    max_pending: int
    rows: History
    pending: list[Any]
    def __init__(self, every: Any = '10ba') -> None:
        """Base class of monitors: measures at intervals, keeps the numbers as rows of `history`, announces `log_metrics`

        Args:
            every: how often: text such as '10ba', a `Time`, a number of epochs, or a function of the Learner
        """
        ...
    def measure(self) -> dict[Any, Any]|None:
        """Return the numbers of now; raises NotImplementedError unless a subclass defines it

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
    def before_fit(self) -> None: ...
    def act(self) -> None: ...
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
    after_fit = cleanup
    after_exception = cleanup
    before_save_checkpoint = cleanup
    def log(self, metrics: dict[Any, Any]|None, step: int|None = None) -> None:
        """Add a row of `metrics`; tensors are read from the device later

        Args:
            metrics: numbers by name; None or an empty dictionary logs nothing
            step: the training batch after which they were measured; None: the last
        """
        ...
    def flush(self) -> None:
        """Read all pending rows from the device at once, add them to the history, and announce them"""
        ...
    @property
    def history(self) -> History:
        """All rows measured so far; reads the pending ones from the device"""
        ...
class LossMonitor(Observer):
    """Logs the training loss of single batches, not smoothed, as `batch_loss`"""
    def measure(self) -> dict[Any, Any]:
        """Return the loss, still on its device"""
        ...
class LRMonitor(Observer):
    """Logs the learning rate of each parameter group, and its momentum if it has one"""
    def measure(self) -> dict[Any, Any]:
        """Return `lr` and `mom`; with several parameter groups `lr/0`, `lr/1`, …"""
        ...
