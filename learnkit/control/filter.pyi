# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Let through some of a handler's calls: every n-th, every 500 batches, once, or on a condition"""
from collections.abc import Callable
from .every import Every
from typing import Any

__all__ = ['Filter', 'FilteredMethod']
class Filter:
    """Lets through every n-th call, those after an interval such as '500ba', only one, or those for which `when` is true"""
    interval: Every|None
    every: Any
    once: Any
    when: Callable[..., Any]|None
    num_called: Any
    num_executed: Any
    due: Any
    def __init__(self, every: Any = None, once: int|bool|None = None, when: Callable[..., Any]|None = None) -> None:
        """Lets through every n-th call, those after an interval such as '500ba', only one, or those for which `when` is true

        Args:
            every: a number of calls, or an interval of training as for `Every`: text such as '500ba'
            once: let through this call only, counted from 1; True is the first
            when: called with this filter and the Learner: let through the calls for which it is true

        Raises:
            ValueError: give one of `every`, `once` and `when`, not …: `when=lambda f,learn: ...` can express any …
            TypeError: `when` must be a function of (filter, learn)
            ValueError: `every` must be a whole number of calls, 1 or more
            ValueError: `once` must be the whole number of a call, 1 or more
        """
        ...
    def passes(self, learn: Any) -> bool:
        """Count this call, and return whether it goes through

        Args:
            learn: the Learner
        """
        ...
    @property
    def events(self) -> tuple[Any, ...]:
        """The events at which `measure` must be called; none without an interval"""
        ...
    def measure(self, learn: Any, name: str) -> None:
        """Find out whether the interval is over

        Args:
            learn: the Learner
            name: one of `events`
        """
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the counts"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue the counts of `state`

        Args:
            state: what `state_dict` returned
        """
        ...
    def __repr__(self) -> str: ...
    def __call__(self, f: Callable[..., Any]) -> FilteredMethod:
        """Decorate a method. Raises TypeError for an interval, which only `learn.on` can measure.

        Args:
            f: a method of a callback

        Raises:
            TypeError: over a method a Filter counts calls, so `every` is a number, not …: for intervals of training use …
        """
        ...
class FilteredMethod:
    """A callback's method with a `Filter` before it"""
    f: Callable[..., Any]
    filter: Filter
    own: Any
    def __init__(self, f: Callable[..., Any], filter: Filter) -> None:
        """A callback's method with a `Filter` before it

        Args:
            f: the method
            filter: the filter, of which each callback gets a copy
        """
        ...
    def __set_name__(self, owner: Any, name: Any) -> None: ...
    def __get__(self, cb: Any, owner: Any = None) -> Any: ...
