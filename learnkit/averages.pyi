# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Numbers of batches, averaged over an epoch, exactly, without making the device wait"""
from fastcore.basics import noop
from torch import Tensor
from typing import Any

__all__ = ['Metric', 'Scalars', 'AvgMetric', 'AvgLoss', 'AvgSmoothLoss', 'MeanMetric']
class Metric:
    """What a metric answers to: `reset`, `accumulate`, and then `value`"""
    saves: tuple[Any, ...]
    """the attributes that hold what was gathered"""
    def reset(self) -> None:
        """Forget all batches"""
        ...
    def accumulate(self, learn: Any) -> None:
        """Take the current batch of `learn` into account"""
        ...
    @property
    def value(self) -> None:
        """The metric's value so far, `None` if there was no batch"""
        ...
    @property
    def name(self) -> str:
        """The class in `snake_case`, without `Metric`"""
        ...
    def settle(self) -> None:
        """Bring what was gathered into these attributes"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """What was gathered so far"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on with what `state_dict` gave"""
        ...
class Scalars:
    """Numbers left on their device until somebody wants to see them"""
    every: int
    new: list[Any]
    packed: list[Any]
    device: Any
    def __init__(self, every: int = 1024) -> None:
        """Numbers left on their device until somebody wants to see them

        Args:
            every: pack that many into one tensor
        """
        ...
    def append(self, x: Tensor) -> None:
        """Add `x`; waits for nothing"""
        ...
    def pack(self) -> None:
        """Many small tensors to one tensor; or to floats, if they are on the CPU, where nobody waits"""
        ...
    def drain(self) -> list[Any]:
        """All numbers since the last call, as floats"""
        ...
def _plain(f: Any) -> Any: ...
def _func_name(f: Any) -> Any: ...
def _shape(o: Any) -> Any: ...
def _explain(e: Any, metric: Any, pred: Any, *targs: Any) -> None:
    """Note on `e` which metric failed, and on what"""
    ...
class AvgMetric(Metric):
    """The mean of `func(pred, *yb)` over the items of an epoch"""
    saves: tuple[Any, ...]
    func: Any
    _name: str|None
    vals: Scalars
    sizes: list[Any]
    total: float
    count: int
    def __init__(self, func: Any, name: str|None = None) -> None:
        """The mean of `func(pred, *yb)` over the items of an epoch

        Args:
            func: returns one number for the batch, a mean over its items
            name: column in the record; the function's name if not given
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    def add(self, val: Any, n: int) -> None:
        """Count `val`, a mean over `n` items, `n` times"""
        ...
    def settle(self) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
def _sum_ranks(total: Any, count: Any, device: Any) -> Any:
    """The sums over all processes that train together"""
    ...
class AvgLoss(AvgMetric):
    """The mean of the losses over the items of an epoch"""
    def __init__(self, name: str = 'loss') -> None: ...
    def accumulate(self, learn: Any) -> None: ...
class AvgSmoothLoss(Metric):
    """Exponential average of the training losses"""
    saves: tuple[Any, ...]
    beta: float
    waiting: Scalars
    count: int
    val: Any
    _raw: list[Any]
    _values: list[Any]
    def __init__(self, beta: float = 0.98) -> None:
        """Exponential average of the training losses

        Args:
            beta: share of the old average that is kept in each step
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    def settle(self) -> None: ...
    @property
    def values(self) -> list[Any]:
        """The average after each batch"""
        ...
    @property
    def raw(self) -> list[Any]:
        """The loss of each batch"""
        ...
    @property
    def value(self) -> Any:
        """The average now, `None` before the first batch"""
        ...
class MeanMetric(AvgMetric):
    """`then` of the mean of all numbers that `func(pred, *yb)` returns in an epoch"""
    then: Any
    def __init__(self, func: Any, then: Any = noop, name: str|None = None) -> None:
        """`then` of the mean of all numbers that `func(pred, *yb)` returns in an epoch

        Args:
            func: returns a tensor with one number per item
            then: applied to the mean, a float
            name: column in the record; the function's name if not given
        """
        ...
    def add(self, val: Any, n: Any) -> None: ...
    @property
    def value(self) -> Any: ...
