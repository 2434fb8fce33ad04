# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`ReduceLROnPlateau`: a lower learning rate after epochs without improvement"""
from collections.abc import Callable
from .tracker import TrackerCallback
from ..metric import Metric
from typing import Any

__all__ = ['ReduceLROnPlateau']
class ReduceLROnPlateau(TrackerCallback):
    """Divides the learning rate by `factor` after `patience` epochs, or validations within them, without improvement"""
    patience: Any
    wait: Any
    lrs: Any
    factor: float
    min_lr: float
    def __init__(
        self,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        patience: int = 1,
        factor: float = 10.0,
        min_lr: float = 0,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Divides the learning rate by `factor` after `patience` epochs, or validations within them, without improvement

        Args:
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            min_delta: a value must be better by more than this to count
            patience: values without improvement after which it acts
            factor: the learning rate is divided by this
            min_lr: the learning rate never gets lower than this
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, or 'skip' it, or 'raise' an error

        Raises:
            ValueError: the learning rate is divided by factor, so it must be more than 1, not ……
            ValueError: min_lr must be 0 or more
            ValueError: `patience` must be a number of epochs, 1 or more
        """
        ...
    def reset(self) -> None: ...
    def act(self) -> None: ...
    def _reduce(self, lrs: Any) -> None: ...
