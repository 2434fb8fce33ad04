# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The loss and the metrics of one phase, training or validation"""
from ._fastcore import L
from .callback import Callback
from typing import Any

__all__ = ['Meter', 'MeterCallback']
class Meter:
    """The loss and the metrics of one phase"""
    metrics: list[Any]
    last: Any
    def __init__(self, metrics: Any) -> None:
        """The loss and the metrics of one phase

        Args:
            metrics: `Metric`s, or one
        """
        ...
    def reset(self, skip: int = 0) -> None:
        """Forget all batches

        Args:
            skip: how many of the first metrics to leave as they are
        """
        ...
    def accumulate(self, learn: Any) -> bool:
        """Include the current batch, unless its loss (or without one, `pred`) is that before; return if it was included

        Args:
            learn: the Learner, after a batch
        """
        ...
    @property
    def values(self) -> list[Any]:
        """The value of each metric"""
        ...
    def _told(self, metric: Any, v: Any) -> Any: ...
    def shared(self, skip: int = 0) -> list[Any]:
        """The value of each metric, that of process 0 in all; raises ValueError if a metric does not join its parts

        Args:
            skip: how many of the first metrics each process has for itself

        Raises:
            ValueError: the metric `…` is … in process 0 and … in process …1: its `value` should join what they have, as by …
        """
        ...
    def state_dict(self) -> list[Any]:
        """Return what each metric has accumulated"""
        ...
    def load_state_dict(self, state: list[Any]) -> None:
        """Continue from `state`; raises ValueError if it is of another number of metrics

        Args:
            state: what `state_dict` returned

        Raises:
            ValueError: the saved run computed … values in training, the loss included, but this one would compute …: give …
        """
        ...
def _same(a: Any, b: Any) -> Any:
    """Are two values equal but for rounding? Only numbers are compared"""
    ...
class MeterCallback(Callback):
    """Computes the loss and the metrics of a validation phase"""
    name: str
    meter: Meter
    def __init__(self, metrics: Any = None, copy: bool = False) -> None:
        """Computes the loss and the metrics of a validation phase

        Args:
            metrics: `Metric`s, or one
            copy: work on copies of the metrics, which a fit may be using?
        """
        ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    @property
    def values(self) -> L:
        """The loss, then the metrics"""
        ...
