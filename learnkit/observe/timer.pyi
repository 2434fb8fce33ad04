# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Prints the times of loader, forward, backward, step, validation and callbacks every few epochs or batches"""
from ..control.every import Every
from .profiler import ProfileCallback
from typing import Any

__all__ = ['TimerCallback']
class TimerCallback(ProfileCallback):
    """Prints at intervals where the time went so far: loader, forward, backward, step, validation, callbacks, rest"""
    every: Every
    def __init__(self, every: Any = '1ep', **kwargs: Any) -> None:
        """Prints at intervals where the time went so far: loader, forward, backward, step, validation, callbacks, rest

        Args:
            every: how often: text such as '10ep' or '500ba', or a number of epochs; None: only at the end
            kwargs: for `ProfileCallback`
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    def print_totals(self) -> None:
        """Print the totals in one line"""
        ...
