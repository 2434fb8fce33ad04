# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Logs the training speed (batches, items, tokens and FLOPs a second) and the remaining time of the run"""
from collections.abc import Callable
from ..control.stopwatch import StopwatchCallback
from .observer import Observer
from typing import Any

__all__ = ['SpeedMonitor', 'RuntimeEstimator']
class SpeedMonitor(StopwatchCallback, Observer):
    """Logs throughput: batches, items (`samples_per_sec`), tokens and FLOPs a second (after Composer's `SpeedMonitor`)"""
    window: Any
    flops: float|Callable[..., Any]|None
    peak_flops: float|None
    marks: Any
    has_tokens: bool
    def __init__(
        self,
        every: Any = '10ba',
        window: int = 100,
        flops: float|Callable[..., Any]|None = None,
        peak_flops: float|None = None,
    ) -> None:
        """Logs throughput: batches, items (`samples_per_sec`), tokens and FLOPs a second (after Composer's `SpeedMonitor`)

        Args:
            every: how often; see `Observer`
            window: the number of batches to average over
            flops: FLOPs of a training batch, forward and backward, or a function of the batch
            peak_flops: FLOPs that all devices together could do in a second, to log `mfu`

        Raises:
            ValueError: `peak_flops` is compared with the operations of a batch: give these as `flops`, or leave out …
            ValueError: `window` must be a number of batches, 1 or more
        """
        ...
    def _reset(self) -> None: ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_batch(self) -> None: ...
    def _counts(self) -> tuple[Any, ...]: ...
    def _tokens(self, batch: Any) -> Any: ...
    def measure(self) -> dict[Any, Any]|None:
        """Return the mean rates over the window; None before the first batch

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
class RuntimeEstimator(StopwatchCallback, Observer):
    """Logs the estimated time until the end of the run, in seconds, as `remaining` (after Composer's `RuntimeEstimator`)"""
    skip: Any
    n_batches: int
    start: tuple[Any, ...]|None
    epoch_validations: list[Any]
    other_seconds: float
    validation_start: Any
    def __init__(self, every: Any = '10ba', skip: int = 1) -> None:
        """Logs the estimated time until the end of the run, in seconds, as `remaining` (after Composer's `RuntimeEstimator`)

        Args:
            every: how often; see `Observer`
            skip: the number of batches at the beginning to leave out of the estimate

        Raises:
            ValueError: `skip` must be a number of batches, 0 or more
        """
        ...
    def _reset(self) -> None: ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def before_train(self) -> None: ...
    def _start(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    @property
    def remaining(self) -> float|None:
        """Seconds until the end of the run; None while it is too early to tell, or if the loader has no length"""
        ...
    def measure(self) -> dict[Any, Any]|None:
        """Return the remaining seconds; None while it is too early to tell

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
