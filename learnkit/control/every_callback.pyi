# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Call a function of the Learner every 500 batches, every second epoch, or every half hour"""
from collections.abc import Callable
from ..callback import Callback
from .every import Every
from typing import Any

__all__ = ['EveryCallback']
class EveryCallback(Callback):
    """Calls `f(learn)` every so many epochs, batches, items or minutes of training"""
    due_together: bool
    f: Callable[..., Any]
    every: Every
    def __init__(self, f: Callable[..., Any], every: Any = '1ep') -> None:
        """Calls `f(learn)` every so many epochs, batches, items or minutes of training

        Args:
            f: function of the Learner
            every: how often, as for `Every`: text such as '500ba', a number of epochs, …

        Raises:
            TypeError: f must be a function of the Learner
        """
        ...
    def set_every(self, every: Any) -> None:
        """Set how often; for an interval of whole epochs the end of a batch is not listened to

        Args:
            every: how often, as for `Every`
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def act(self) -> None:
        """Do what is to be done each time"""
        ...
