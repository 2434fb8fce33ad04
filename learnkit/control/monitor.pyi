# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Watch a column of the Recorder, or a function of the Learner, and keep the best value so far"""
from collections.abc import Callable
from ..metric import Metric
from typing import Any

__all__ = ['Monitor']
class Monitor:
    """Keeps the best value so far of a metric, of another column of the Recorder, or of a function of the Learner"""
    monitor: str|Callable[..., Any]|Metric|None
    asked: str|Callable[..., Any]|None
    min_delta: float
    nan: str
    name: Any
    comp: Any
    lower: Any
    best: Any
    column: Any
    source: Any
    def __init__(
        self,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        nan: str = 'worse',
    ) -> None:
        """Keeps the best value so far of a metric, of another column of the Recorder, or of a function of the Learner

        Args:
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            min_delta: a value must be better by more than this to count
            nan: a NaN is 'worse' than everything, or 'skip' it, or 'raise' an error

        Raises:
            TypeError: monitor must be the name of a column such as 'valid_loss', a metric, a function of the Learner, or …
            ValueError: min_delta is how much better a value must be: 0 or more
            ValueError: nan must be 'worse', 'skip' or 'raise'
        """
        ...
    def start(self, learn: Any) -> None:
        """Find the column and the direction, before training. Raises ValueError if there is none, or it is unclear.

        Args:
            learn: the Learner, in `before_fit`

        Raises:
            ValueError: there is no Recorder among the callbacks whose columns could be watched: add it, or pass a function …
            ValueError: there is no column … to watch…: …
            ValueError: is a lower or a higher `…` better? The name does not tell: write comp='min' or comp='max'…
        """
        ...
    def reset(self) -> None:
        """Forget the best value"""
        ...
    def value(self, learn: Any) -> float|None:
        """Return the value now; None if there is none. Raises TypeError if it is not a number.

        Args:
            learn: the Learner, at the end of an epoch
        """
        ...
    def number(self, v: Any) -> float|None:
        """Return `v` as a float. Raises TypeError if it is not a number.

        Args:
            v: a number, a tensor with one element, or None

        Raises:
            TypeError: `…` must be one number to be watched, but it is …
        """
        ...
    def better(self, value: float) -> bool:
        """Whether `value` is better than the best so far, by more than `min_delta`

        Args:
            value: a value, not NaN
        """
        ...
    def update(self, value: float|None) -> bool|None:
        """Keep `value` if it is the best; return whether it is, None without a value. Raises ValueError as `nan` says.

        Args:
            value: the new value; None if there is none

        Raises:
            ValueError: `…` is nan (`nan='worse'` would take that for no improvement, `nan='skip'` would ignore it)
        """
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the best value so far"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from the best value of `state`

        Args:
            state: what `state_dict` returned
        """
        ...
    def __repr__(self) -> str: ...
    def _column(self, learn: Any) -> Any:
        """The column to watch; None for a function of the Learner

        Raises:
            ValueError: there is no Recorder among the callbacks whose columns could be watched: add it, or pass a function …
            ValueError: there is no column … to watch…: …
        """
        ...
    def _is_metric(self, metric: Any) -> Any:
        """Whether `monitor` is this metric, or the function that it was made of"""
        ...
    def _lower(self, learn: Any) -> Any: ...
    def in_row(self, row: dict[Any, Any]) -> bool:
        """Return whether the value can be told after this row: it has the column, or a function of the Learner is watched

        Args:
            row: of a validation within an epoch
        """
        ...
    def row_value(self, row: dict[Any, Any], learn: Any) -> float|None:
        """Return the value after `row`. Raises TypeError if it is not a number.

        Args:
            row: of a validation within an epoch, with the value
            learn: the Learner, in `after_row`
        """
        ...
    def told(self, learn: Any) -> bool:
        """Return whether a row after the last batch of this epoch has told the value already

        Args:
            learn: the Learner, at the end of an epoch
        """
        ...
