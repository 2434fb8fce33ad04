# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""By the name of a metric, as the metric says itself, or as the user says"""
from collections.abc import Callable
from typing import Any

__all__ = ['lower_better', 'mk_comp']
_lower: set[Any]
_higher: set[Any]
def lower_better(name: str) -> bool|None:
    """Whether a lower value is better, judged by the name; None if the name does not tell

    Args:
        name: of a loss or a metric
    """
    ...
_attributes: dict[Any, Any]
def says_lower(metric: Any) -> bool|None:
    """Whether a lower value is better, as the metric's attributes say; None if they say nothing

    Args:
        metric: a `Metric`, or the function or object that one is made of
    """
    ...
_comps: dict[Any, Any]
def mk_comp(comp: str|Callable[..., Any]) -> tuple[Any, ...]:
    """Return `(f, lower)`: a comparison of two floats, and whether it prefers the lower. Raises ValueError if unclear.

    Args:
        comp: 'min', 'max', or comp(a,b) -> whether a is better than b

    Raises:
        ValueError: comp must be 'min', 'max' or a function such as `np.less` or `operator.gt`
        ValueError: comp does not say which of two numbers is better: of 0 and 1 it prefers …; write 'min' or 'max'
    """
    ...
