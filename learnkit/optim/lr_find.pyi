# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which learning rate? Try them all in a hundred batches, look at the curve, and leave no trace"""
from .param_scheduler import Scheduler
from ..recorder import Recorder
from typing import Any

__all__ = ['LRFinder', 'valley', 'slide', 'minimum', 'steep', 'SuggestionMethod', 'LRCurve', 'CurveRecorder']
class LRFinder(Scheduler):
    """Trains with a learning rate that grows from batch to batch; run it by `learn.lr_find`"""
    modes: tuple[Any, ...]
    names: tuple[Any, ...]
    rec: Any
    sched: Any
    num_it: int
    stop_div: bool
    def __init__(
        self,
        start_lr: float|list[Any] = 1e-07,
        end_lr: float|list[Any] = 10,
        num_it: int = 100,
        stop_div: bool = True,
    ) -> None:
        """Trains with a learning rate that grows from batch to batch; run it by `learn.lr_find`

        Args:
            start_lr: the learning rate of the first batch; a list has one for each parameter group
            end_lr: the learning rate that is reached after the last
            num_it: batches, at least 6
            stop_div: stop when the loss is above four times its minimum?
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_batch(self) -> None: ...
    @property
    def end(self) -> int|None:
        """How many batches it took until the loss was above four times its minimum, or no number; None: that never was"""
        ...
    @property
    def curve(self) -> tuple[Any, ...]:
        """The learning rates, and the smoothed loss after the batch of each"""
        ...
def _check_curve(lrs: Any, losses: Any, n: Any, what: Any) -> tuple[Any, ...]:
    """Lists of numbers, if there are `n` of them"""
    ...
def valley(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """Somewhat before the middle of the longest descent

    Args:
        lrs: learning rates, growing
        losses: the smoothed loss at each
        num_it: not needed

    Returns:
        the suggestion, and the point (rate, loss) to mark
    """
    ...
def slide(
    lrs: list[Any],
    losses: list[Any],
    num_it: int = 0,
    lr_diff: int = 15,
    thresh: float = 0.005,
    adjust_value: float = 1.0,
) -> tuple[Any, ...]:
    """From the right, the first place where the slopes at two points, `lr_diff` apart, are about the same

    Args:
        lrs: learning rates, growing
        losses: the smoothed loss at each
        num_it: not needed
        lr_diff: how far apart two slopes are compared
        thresh: how much they may differ
        adjust_value: the suggestion is multiplied by this

    Returns:
        the suggestion, and the point (rate, loss) to mark
    """
    ...
def _at(lr: Any, lrs: Any, losses: Any) -> Any:
    """The loss at rate `lr`, in a straight line between its neighbours on the logarithmic axis"""
    ...
def minimum(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """A tenth of the rate where the loss is lowest, which is the edge of what goes well

    Args:
        lrs: learning rates, growing
        losses: the smoothed loss at each
        num_it: not needed

    Returns:
        the suggestion, and the point (rate, loss) to mark
    """
    ...
def steep(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """Where the loss falls fastest

    Args:
        lrs: learning rates, growing
        losses: the smoothed loss at each
        num_it: not needed

    Returns:
        the suggestion, and the point (rate, loss) to mark
    """
    ...
class SuggestionMethod:
    """The suggestions, under the names that fastai has for them"""
    Valley: Any
    Slide: Any
    Minimum: Any
    Steep: Any
class LRCurve:
    """What `lr_find` found: `lrs`, the smoothed `losses`, and what is suggested by each of `funcs`"""
    lrs: list[Any]
    losses: list[Any]
    num_it: int
    points: dict[Any, Any]
    inner: list[Any]
    values: dict[Any, Any]
    def __init__(self, lrs: list[Any], losses: list[Any], num_it: int = 100, funcs: Any = ()) -> None:
        """What `lr_find` found: `lrs`, the smoothed `losses`, and what is suggested by each of `funcs`

        Args:
            lrs: learning rates
            losses: the smoothed loss at each
            num_it: how many batches were meant
            funcs: functions such as `valley`
        """
        ...
    def _suggest(self, f: Any) -> Any: ...
    @property
    def suggested(self) -> tuple[Any, ...]:
        """The suggestions, as a named tuple"""
        ...
    def plot(self, skip_end: int = 5, suggestions: Any = None, nms: Any = None, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the loss against the learning rate; returns the matplotlib axes

        Args:
            skip_end: how many of the last points to leave out
            suggestions: the points (rate, loss) to mark; None: those of the suggestions
            nms: and their names
            ax: matplotlib axes to draw on; new ones if None
            kwargs: of matplotlib's `plot`
        """
        ...
def _name(f: Any) -> Any: ...
class CurveRecorder(Recorder):
    """The Recorder of a run in which the loss is meant to explode"""
    name: str
    def _look_for_nan(self) -> None: ...
