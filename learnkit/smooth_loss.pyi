# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The exponential moving average of the training loss"""
from .metric import Metric
from .scalars import ScalarBuffer, Series
from typing import Any

__all__ = ['AvgSmoothLoss']
class AvgSmoothLoss(Metric):
    """Exponential moving average of the training losses, without the bias towards 0 at the beginning"""
    beta: Any
    unseen: Any
    waiting: ScalarBuffer
    count: int
    val: Any
    _raw: Series
    _values: Series
    def __init__(self, beta: float = 0.98) -> None:
        """Exponential moving average of the training losses, without the bias towards 0 at the beginning

        Args:
            beta: share of the old average that each batch keeps: at least 0, less than 1

        Raises:
            ValueError: `beta` must be a fraction
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    def settle(self) -> None: ...
    @property
    def every(self) -> int:
        """How many batches a number in `values` and `raw` stands for"""
        ...
    @property
    def values(self) -> list[Any]:
        """The average after each batch"""
        ...
    @property
    def raw(self) -> list[Any]:
        """The loss of each batch"""
        ...
    @property
    def value(self) -> float|None:
        """The average now, `None` before the first batch"""
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
