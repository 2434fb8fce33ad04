# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Make a metric of a function, a metric of torchmetrics or torcheval, or a function of scikit-learn"""
from collections.abc import Callable, Iterable
from ._fastcore import L
from .metric import AvgMetric, Metric
from typing import Any

__all__ = ['TorchMetric', 'mk_metric', 'ColumnMetric', 'AvgColumns', 'columns', 'mk_metrics']
class TorchMetric(Metric):
    """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`, as in torchmetrics and torcheval"""
    metric: Any
    _name: str|None
    activation: Any
    device: Any
    n: Any
    def __init__(self, metric: Any, name: str|None = None, activation: Callable[..., Any]|None = None) -> None:
        """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`, as in torchmetrics and torcheval

        Args:
            metric: for instance `torchmetrics.Accuracy('multiclass', num_classes=10)`
            name: column in the history; None: the class in `snake_case`
            activation: function for the model's outputs, such as `torch.sigmoid`

        Raises:
            TypeError: A collection is several metrics: pass it to `Learner(metrics=)`, which takes them one by one.
        """
        ...
    def reset(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what was accumulated so far: torchmetrics lists the names of its states in `_defaults`"""
        ...
    def load_state_dict(self, state: Any) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
    def _of_all(self) -> Any:
        """The value for the batches of all processes

        Raises:
            TypeError: the metric `…` cannot be joined over … processes: give … a method `merge_state(others)`, as metrics …
        """
        ...
    def _merged(self) -> Any: ...
def _mk_sklearn(m: Any, f: Any) -> Any: ...
def mk_metric(m: Any) -> Any:
    """Make a metric for the Learner; raises TypeError for what cannot be one

    Args:
        m: function of (pred, *targets), `Metric`, torchmetrics metric, function of scikit-learn, or the class of one

    Returns:
        a `Metric`, or an object with the same methods

    Raises:
        TypeError: the metric is the class …, without …: pass an instance of it, `…(...)`
        TypeError: A metric must be a function of predictions and targets, a `Metric`, a metric of torchmetrics or a …
        TypeError: scikit-learn's `…` may want classes or probabilities. For classes write `skm_to_learnkit(…)`, for …
    """
    ...
class ColumnMetric(Metric):
    """One of the numbers that a metric gives, as a metric of its own"""
    metric: Any
    key: Any
    i: int
    def __init__(self, metric: Any, key: Any, i: int) -> None:
        """One of the numbers that a metric gives, as a metric of its own

        Args:
            metric: a `Metric` that gives a dictionary, or numbers in a row; several columns share it
            key: the key of the number, and its name
            i: its place; the first column is the one that accumulates
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what the shared metric has accumulated"""
        ...
    def load_state_dict(self, state: Any) -> None: ...
class AvgColumns(AvgMetric):
    """The mean of each number that `func(pred, *yb)` returns, over the targets of an epoch that count"""
    keys: list[Any]
    means: list[Any]
    def __init__(self, func: Callable[..., Any], keys: Iterable[Any], name: str|None = None) -> None:
        """The mean of each number that `func(pred, *yb)` returns, over the targets of an epoch that count

        Args:
            func: returns a dictionary of numbers for the batch, or numbers in a row: means over its targets
            keys: the keys of the dictionary, or names for the numbers
            name: what the names of the columns begin with; None: the function's name
        """
        ...
    def reset(self) -> None: ...
    def add(self, val: Any, n: Any) -> None: ...
    def _in_order(self, val: Any) -> Any:
        """The numbers as `keys` has them; raises ValueError if there are others

        Raises:
            ValueError: The metric `…` should return the numbers …, but it returned …: `columns(…, [...])` names each of …
        """
        ...
    @property
    def value(self) -> list[Any]|None: ...
    @property
    def state(self) -> list[Any]:
        """All that the means have accumulated"""
        ...
    def load_state_dict(self, state: Any) -> None: ...
def columns(m: Any, keys: Iterable[Any]) -> list[Any]:
    """Make a metric of each number that the metric `m` gives; their columns are called `{name of m}_{key}`

    Args:
        m: anything that `mk_metric` takes, which gives a dictionary, or numbers in a row
        keys: the keys of the dictionary, or names for the numbers
    """
    ...
def _each(m: Any) -> Any:
    """The metrics, one for each column, of what a user calls one metric"""
    ...
def mk_metrics(ms: Any) -> L:
    """Make metrics for the Learner, one for each column: see `mk_metric`

    Args:
        ms: metrics of any kind, or one; or a collection of torchmetrics
    """
    ...
