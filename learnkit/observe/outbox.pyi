# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Rows of numbers wait here for the device, and leave in the order in which they were logged"""
import torch
from collections.abc import Callable
from ..learner import Learner
from typing import Any

__all__ = ['LogRow', 'Outbox']
def stack_scalars(values: list[Any]|tuple[Any, ...]) -> torch.Tensor:
    """Return one tensor of all `values`, on the device of the first

    Args:
        values: tensors of one element each; they may be on several devices, as the parts of a model may

    Returns:
        of shape (len(values),)
    """
    ...
class LogRow:
    """Numbers by name, of which some may still be on their device"""
    step: int
    then: Callable[..., Any]|None
    metrics: dict[Any, Any]
    names: list[Any]
    values: Any
    def __init__(self, metrics: dict[Any, Any], step: int, then: Callable[..., Any]|None = None) -> None:
        """Numbers by name, of which some may still be on their device

        Args:
            metrics: floats, or tensors of one element, by name
            step: the training batches of all fits so far
            then: called with the numbers when they are read
        """
        ...
class Outbox:
    """Rows on their way to the loggers, in the order in which they were logged"""
    max_pending: int
    max_seconds: float
    rows: Any
    unread: list[Any]
    busy: bool
    since: Any
    start: Any
    fitting: bool
    files: dict[Any, Any]
    def __init__(self) -> None: ...
    def step(self, learn: Learner) -> int:
        """Return the number of training batches so far, in all fits that were logged

        Args:
            learn: the Learner
        """
        ...
    def put(self, learn: Learner, metrics: dict[Any, Any]|None, then: Callable[..., Any]|None = None) -> None:
        """Log `metrics`; not in a validation or prediction of its own, which leaves no trace

        Args:
            learn: the Learner
            metrics: numbers by name: floats, or tensors of one element; None or empty: nothing is logged
            then: called with the numbers when they are read
        """
        ...
    def ready(self, learn: Learner) -> bool:
        """Whether rows may leave now: it is certain that this part of the run was not logged before

        Args:
            learn: the Learner
        """
        ...
    def flush(self, learn: Learner) -> None:
        """Read all rows from the device at once, and announce them by `log_metrics`

        Args:
            learn: the Learner
        """
        ...
    def _read(self) -> None: ...
    def clear(self) -> None:
        """Drop all rows"""
        ...
    def begin(self) -> None:
        """Begin a fit"""
        ...
    def end(self, learn: Learner) -> None:
        """End a fit: what it logged is announced, and the next one counts on from its last step

        Args:
            learn: the Learner
        """
        ...
