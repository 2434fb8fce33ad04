# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which number is watched, which way is better, and what was the best so far"""
from collections.abc import Callable
from typing import Any

__all__ = ['lower_better', 'mk_comp', 'Monitor']
_lower: set[Any]
_higher: set[Any]
def lower_better(name: str) -> bool|None:
    """Whether a lower value is better, judged by the name; None if that does not tell

    Args:
        name: of a loss or a metric
    """
    ...
_says: dict[Any, Any]
def says_lower(metric: Any) -> bool|None:
    """Whether a lower value is better, as the metric says itself; None if it says nothing

    Args:
        metric: a `Metric`, or what one is made of
    """
    ...
_comps: dict[Any, Any]
def mk_comp(comp: str|Callable[..., Any]) -> tuple[Any, ...]:
    """`(f, lower)`: a function of two floats, and whether it prefers the lower one

    Args:
        comp: 'min', 'max', or comp(a,b) -> whether a is better than b
    """
    ...
def func_name(f: Any) -> str:
    """What `f` is called

    Args:
        f: a function, also a `partial` of one, or an object
    """
    ...
class Monitor:
    """Watches a column of the Recorder, or a function of the Learner, and knows the best value so far"""
    monitor: str|Callable[..., Any]|None
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
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        nan: str = 'worse',
    ) -> None:
        """Watches a column of the Recorder, or a function of the Learner, and knows the best value so far

        Args:
            monitor: a column of the Recorder, its metric, a function of the Learner, or None: valid_loss or train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            min_delta: by more than this must a value be better to count
            nan: a NaN is 'worse' than everything, to 'skip', or a reason to 'raise'
        """
        ...
    def start(self, learn: Any) -> None:
        """Before training: is there such a column, and which way is better? Raises ValueError if not"""
        ...
    def reset(self) -> None:
        """Forget the best value"""
        ...
    def value(self, learn: Any) -> float|None:
        """The value now, at the end of an epoch; None if there is none"""
        ...
    def number(self, v: Any) -> float|None:
        """`v` as a number. Raises TypeError if it is none that could be watched."""
        ...
    def better(self, value: float) -> bool:
        """Is `value` better than the best so far, by more than `min_delta`?"""
        ...
    def update(self, value: float|None) -> bool|None:
        """Take in a value: is it the new best? None if there is nothing to judge"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """The best value so far"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on from that best value"""
        ...
    def __repr__(self) -> str: ...
    def _column(self, learn: Any) -> Any:
        """The column that is watched; None if it's a function of the Learner"""
        ...
    def _stands_for(self, metric: Any) -> Any: ...
    def _lower(self, learn: Any) -> Any: ...
