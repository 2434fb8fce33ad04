# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Find out whether an epoch improved a metric, and call a function when it did"""
from collections.abc import Callable
from ..callback import Callback
from .monitor import Monitor
from ..metric import Metric
from typing import Any

__all__ = ['TrackerCallback', 'OnBetter']
class TrackerCallback(Callback):
    """Keeps track of the best value of `monitor`; base class of the callbacks that act on it"""
    remove_on_fetch: bool
    loaded: bool
    new_best: Any
    watch: Monitor
    monitor: str|Callable[..., Any]|Metric|None
    comp: str|Callable[..., Any]|None
    min_delta: float
    reset_on_fit: bool
    nan: str
    def __init__(
        self,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Keeps track of the best value of `monitor`; base class of the callbacks that act on it

        Args:
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            min_delta: a value must be better by more than this to count
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, or 'skip' it, or 'raise' an error
        """
        ...
    @property
    def best(self) -> float|None:
        """The best value so far; plus or minus infinity if there is none yet"""
        ...
    def before_fit(self) -> None: ...
    def reset(self) -> None:
        """Start anew; called when a fit begins that does not continue from a saved state"""
        ...
    def after_epoch(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def compare(self, value: float|None) -> None:
        """Compare `value` with the best: `new_best` is True, False, or None if there is no value; then `act`

        Args:
            value: of an epoch or a validation; None: it has none
        """
        ...
    def act(self) -> None:
        """Do what follows from `new_best`"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`, in the fit that comes next

        Args:
            state: what `state_dict` returned
        """
        ...
    def cleanup(self) -> None: ...
class OnBetter(TrackerCallback):
    """Calls `f(learn)` after each epoch, or validation within one, that is the best so far"""
    f: Callable[..., Any]
    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Calls `f(learn)` after each epoch, or validation within one, that is the best so far

        Args:
            f: function of the Learner
            args: positional arguments of `TrackerCallback`
            kwargs: its keyword arguments

        Raises:
            TypeError: f must be a function of the Learner
        """
        ...
    def act(self) -> None: ...
