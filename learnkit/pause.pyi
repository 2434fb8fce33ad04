# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Says at how many batches from now processes that train together ask each other again, so that it costs little"""
from collections.abc import Callable
from time import perf_counter
from typing import Any

class Pause:
    """Counts the batches until the processes ask each other again"""
    clock: Callable[[], float]
    since: Any
    n: int
    length: int
    cost: Any
    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        """Counts the batches until the processes ask each other again

        Args:
            clock: the time in seconds
        """
        ...
    def over(self) -> bool:
        """Count a batch; returns whether they ask at its end"""
        ...
    def end(self) -> None:
        """Let them ask at the end of this batch"""
        ...
    def proposal(self) -> int:
        """Return how many batches this process would wait after the message that it is about to send"""
        ...
    def begin(self, length: int, cost: float) -> None:
        """Begin to count; it costs what the fastest message did, as the others waited for a slow process

        Args:
            length: how many batches: the least number that a process proposed
            cost: what the message took, in seconds
        """
        ...
