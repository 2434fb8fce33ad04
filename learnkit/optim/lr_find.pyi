# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""lr_find: a learning-rate range test that suggests a learning rate and leaves the Learner unchanged"""
from .param_scheduler import Scheduler
from ..snapshot import Snapshot
from typing import Any

__all__ = ['LRFinder', 'LRCurve']
class LRFinder(Scheduler):
    """Trains with an exponentially growing learning rate, then puts back what it trained; used by `learn.lr_find`"""
    rec: Any
    before: Snapshot
    joint: list[Any]|None
    restores: bool
    num_it: Any
    sched: Any
    start_lr: float|list[Any]
    end_lr: float|list[Any]
    stop_div: bool
    def __init__(
        self,
        start_lr: float|list[Any] = 1e-07,
        end_lr: float|list[Any] = 10,
        num_it: int = 100,
        stop_div: bool = True,
    ) -> None:
        """Trains with an exponentially growing learning rate, then puts back what it trained; used by `learn.lr_find`

        Args:
            start_lr: the learning rate of the first batch; a list has one for each parameter group
            end_lr: the learning rate that is approached by the last batch
            num_it: number of batches, at least 6
            stop_div: stop when the loss is above four times its minimum?

        Raises:
            ValueError: `num_it` must be a whole number of batches, 6 or more
            TypeError: `…` must be a number, or a list with one for each parameter group
            ValueError: the learning rate grows from start_lr to end_lr, so … must be below …
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_fit(self) -> None: ...
    def cleanup(self) -> None: ...
    def _join(self) -> None:
        """The losses of all processes, as the curve is one for all"""
        ...
    @property
    def _losses(self) -> list[Any]:
        """The smoothed loss after each batch; of several processes their mean"""
        ...
    @property
    def end(self) -> int|None:
        """The number of batches until the loss was above four times its minimum, or NaN; None if it never was"""
        ...
    @property
    def curve(self) -> tuple[Any, ...]:
        """The learning rates, and the smoothed loss after the batch of each"""
        ...
def _suggested(values: Any) -> Any:
    """A named tuple of `values`; it can be pickled, though its class is found nowhere: it is made again"""
    ...
class LRCurve:
    """The result of `lr_find`: learning rates, smoothed losses, and the suggestions of the functions `funcs`"""
    lrs: list[Any]
    losses: list[Any]
    num_it: int
    points: dict[Any, Any]
    inner: list[Any]
    values: dict[Any, Any]
    def __init__(self, lrs: list[Any], losses: list[Any], num_it: int = 100, funcs: Any = ()) -> None:
        """The result of `lr_find`: learning rates, smoothed losses, and the suggestions of the functions `funcs`

        Args:
            lrs: the learning rates
            losses: the smoothed loss at each learning rate
            num_it: the number of batches that were planned
            funcs: one or several suggestion functions such as `valley`

        Raises:
            TypeError: suggest_funcs are functions such as `valley`
        """
        ...
    def _suggest(self, f: Any) -> Any: ...
    @property
    def suggested(self) -> tuple[Any, ...]:
        """The suggestions, as a named tuple"""
        ...
    def plot(self, skip_end: int = 5, suggestions: Any = None, nms: Any = None, ax: Any = None, **kwargs: Any) -> Any:
        """Plot the loss against the learning rate

        Args:
            skip_end: number of points to leave out at the end
            suggestions: points (learning rate, loss) to mark; None: those of the suggestions
            nms: the names of these points
            ax: matplotlib axes to draw on; None: new ones
            kwargs: passed on to matplotlib's `plot`

        Returns:
            the matplotlib axes
        """
        ...
def _func_name(f: Any) -> Any: ...
