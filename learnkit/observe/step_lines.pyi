# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One line of text every so many batches: loss, learning rate, speed and the time left"""
from .speed import SpeedMonitor
from typing import Any

__all__ = ['StepLines']
class StepLines(SpeedMonitor):
    """Writes a line at intervals: epoch and batch, smoothed loss, learning rate, speed, and the time left"""
    def __init__(self, every: Any = '100ba', window: int = 100) -> None:
        """Writes a line at intervals: epoch and batch, smoothed loss, learning rate, speed, and the time left

        Args:
            every: how often: text such as '500ba' or '1m', a `Time`, or a function of the Learner
            window: the number of batches over which the speed is averaged
        """
        ...
    def act(self) -> None: ...
    def line(self) -> str:
        """Return the line for now"""
        ...
