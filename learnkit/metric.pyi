# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Metrics: numbers computed batch by batch, averaged exactly over an epoch, without waiting for the device"""
from collections.abc import Callable
from fastcore.basics import noop
from .batch_weight import BatchWeight
from .scalars import ScalarBuffer
from torch import Tensor
from typing import Any

__all__ = ['Metric', 'AvgMetric', 'AvgLoss', 'MeanMetric', 'ValueMetric', 'LossMetric']
class Metric:
    """Base class of metrics: a subclass defines `reset`, `accumulate` and the property `value`"""
    saves: tuple[Any, ...]
    """the attributes that hold what was accumulated"""
    def reset(self) -> None:
        """Forget all batches"""
        ...
    def accumulate(self, learn: Any) -> None:
        """Include the current batch of `learn`

        Args:
            learn: the Learner, after a batch

        Raises:
            NotImplementedError: The metric `…` should define `accumulate(self, learn)`.
        """
        ...
    @property
    def value(self) -> Any:
        """The metric's value so far, `None` if there was no batch

        Raises:
            NotImplementedError: The metric `…` should define the property `value`.
        """
        ...
    @property
    def name(self) -> str:
        """The column in the history: the class in `snake_case`, without `Metric`"""
        ...
    def __repr__(self) -> str: ...
    def settle(self) -> None:
        """Bring what was accumulated up to date in the attributes that `saves` names"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what was accumulated so far"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`

        Args:
            state: what `state_dict` returned
        """
        ...
def snake_name(f: Callable[..., Any]) -> str:
    """Return the name of a function; of another object, its class in `snake_case`

    Args:
        f: a function, a `partial` of one, or an object that can be called
    """
    ...
def add_metric_note(e: BaseException, metric: Metric, pred: Any, *targs: Any) -> None:
    """Add a note to `e`: which metric failed, and for which shapes

    Args:
        e: the error that a metric raised
        metric: the metric
        pred: the predictions that it was given
        targs: and the targets
    """
    ...
def _settled(k: Any) -> Any:
    """A property: attribute `k` of a metric, brought up to date"""
    ...
class AvgMetric(Metric):
    """The mean of `func(pred, *yb)` over the targets of an epoch that count"""
    sums: Any
    total: Any
    count: Any
    func: Callable[..., Any]|None
    _name: str|None
    new: list[Any]
    vals: ScalarBuffer
    weights: ScalarBuffer
    _total: Any
    _count: Any
    weigh: BatchWeight|None
    kwargs: dict[Any, Any]
    def __init__(self, func: Callable[..., Any]|None, name: str|None = None) -> None:
        """The mean of `func(pred, *yb)` over the targets of an epoch that count

        Args:
            func: returns one number for the batch: a mean over its targets
            name: column in the history; None: the function's name
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    def begin(self, learn: Any) -> BatchWeight:
        """Ask the loss function once what counts; returns what weighs the batches

        Args:
            learn: the Learner, after the first batch
        """
        ...
    def add(self, val: Any, n: int|float|Tensor) -> None:
        """Include `val` with weight `n`; raises ValueError if it is not one number

        Args:
            val: a number, or a tensor with one element: a mean over `n` targets or items
            n: its weight

        Raises:
            ValueError: The metric `…` should return one number for the batch, but it returned …. Perhaps a `.mean()` is …
        """
        ...
    def _pack(self) -> None: ...
    def settle(self) -> None: ...
    @property
    def value(self) -> float|None: ...
    def of_sums(self, total: float, count: float) -> float:
        """Return the metric's value from two sums

        Args:
            total: the sum of the numbers, each times its weight
            count: the sum of the weights
        """
        ...
    @property
    def name(self) -> str: ...
class AvgLoss(AvgMetric):
    """The loss of an epoch: what the loss function would return for all its items as one batch"""
    def __init__(self, name: str = 'loss') -> None:
        """The loss of an epoch: what the loss function would return for all its items as one batch

        Args:
            name: column in the history
        """
        ...
    def begin(self, learn: Any) -> Any: ...
    def accumulate(self, learn: Any) -> None: ...
    def of_sums(self, total: Any, count: Any) -> Any: ...
class MeanMetric(AvgMetric):
    """`then` of the mean of all numbers that `func(pred, *yb)` returns in an epoch"""
    then: Callable[..., Any]
    def __init__(self, func: Callable[..., Any], then: Callable[..., Any] = noop, name: str|None = None) -> None:
        """`then` of the mean of all numbers that `func(pred, *yb)` returns in an epoch

        Args:
            func: returns a tensor with one number per item
            then: applied to the mean, a float
            name: column in the history; None: the function's name
        """
        ...
    def add(self, val: Any, n: Any) -> None: ...
    @property
    def value(self) -> Any: ...
class ValueMetric(Metric):
    """The value of `func()` at the end of an epoch"""
    func: Callable[..., Any]
    metric_name: str|None
    def __init__(self, func: Callable[..., Any], metric_name: str|None = None) -> None:
        """The value of `func()` at the end of an epoch

        Args:
            func: called without arguments
            metric_name: column in the history; None: the function's name
        """
        ...
    def accumulate(self, learn: Any) -> None:
        """Nothing to do

        Args:
            learn: the Learner, after a batch
        """
        ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
class LossMetric(AvgMetric):
    """The mean of the attribute `attr` that the loss function sets in each batch"""
    attr: str
    def __init__(self, attr: str, nm: str|None = None) -> None:
        """The mean of the attribute `attr` that the loss function sets in each batch

        Args:
            attr: attribute of `learn.loss_func`, a mean over the batch
            nm: column in the history; None: `attr`
        """
        ...
    def accumulate(self, learn: Any) -> None: ...
