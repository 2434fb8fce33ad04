# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Stop when nothing improves, when a metric is good enough, or when the loss is NaN"""
from collections.abc import Callable
from ..callback import Callback
from .every import Every
from .monitor import Monitor
from .tracker import TrackerCallback
from ..metric import Metric
from typing import Any

__all__ = ['EarlyStoppingCallback', 'ThresholdStopper', 'TerminateOnNaNCallback']
class EarlyStoppingCallback(TrackerCallback):
    """Ends the fit after `patience` epochs, or validations within them, without improvement"""
    since: Any
    patience: Any
    wait: Any
    def __init__(
        self,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        patience: int = 1,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Ends the fit after `patience` epochs, or validations within them, without improvement

        Args:
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            min_delta: a value must be better by more than this to count
            patience: values without improvement after which it stops
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, or 'skip' it, or 'raise' an error

        Raises:
            ValueError: `patience` must be a number of epochs, 1 or more
        """
        ...
    def reset(self) -> None: ...
    def act(self) -> None: ...
class ThresholdStopper(Callback):
    """Ends the fit when the monitored value reaches `threshold`"""
    threshold: float
    watch: Monitor
    every: Every
    def __init__(
        self,
        threshold: float,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        every: Any = '1ep',
    ) -> None:
        """Ends the fit when the monitored value reaches `threshold`

        Args:
            threshold: stop when the value is at most (comp='min') or at least ('max') this
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            every: how often to look, as for `Every`; within an epoch for functions only

        Raises:
            ValueError: the threshold must be a number, not nan, which nothing reaches
            ValueError: within an epoch (every=…) there is no row with … yet: pass a function such as `lambda learn: …
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def _look(self) -> None: ...
    def _compare(self, value: Any) -> None: ...
class TerminateOnNaNCallback(Callback):
    """Ends the fit when a loss is NaN or infinite"""
    every: Every
    flag: Any
    def __init__(self, every: Any = '100ba') -> None:
        """Ends the fit when a loss is NaN or infinite

        Args:
            every: how often to read the losses on an accelerator, which waits for it; as for `Every`
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_train(self) -> None: ...
    after_validate = after_train
    def _waits(self, loss: Any) -> Any: ...
    def _look(self) -> None: ...
    def nonfinite_loss(self) -> None:
        """Handle the event, so that it is no warning or error: the fit ends at the next reading of the losses"""
        ...
    def cleanup(self) -> None: ...
