# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A function becomes a callback with one decorator, and runs each time, every n-th time, once, or when you say"""
from collections.abc import Callable
from ..callback import Callback
from typing import Any

__all__ = ['Filter', 'Filtered', 'OnCallback']
class Filter:
    """Lets through every `every`-th call, only call number `once`, or those for which `when(filter, learn)` is true; without a condition, all"""
    every: int|None
    once: int|None
    when: Callable[..., Any]|None
    num_called: Any
    num_executed: Any
    def __init__(self, every: int|None = None, once: int|None = None, when: Callable[..., Any]|None = None) -> None:
        """Lets through every `every`-th call, only call number `once`, or those for which `when(filter, learn)` is true; without a condition, all

        Args:
            every: let through calls number every, 2*every, …
            once: let through this call only, counted from 1
            when: asked at each call, with this filter and the Learner
        """
        ...
    def passes(self, learn: Any) -> bool:
        """Count this call; does it go through?"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """The counts"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on counting from `state`"""
        ...
    def __repr__(self) -> str: ...
    def __call__(self, f: Callable[..., Any]) -> Filtered:
        """As a decorator of a callback's method"""
        ...
class Filtered:
    """A callback's method behind a `Filter`"""
    f: Callable[..., Any]
    filter: Filter
    __doc__: Any
    own: Any
    def __init__(self, f: Callable[..., Any], filter: Filter) -> None: ...
    def __set_name__(self, owner: Any, name: Any) -> None: ...
    def __get__(self, cb: Any, owner: Any = None) -> Any: ...
class OnCallback(Callback):
    """Calls `f(learn)` at an event, if the filter lets it through"""
    saves: tuple[Any, ...]
    f: Callable[..., Any]
    at: Any
    filter: Filter
    def __init__(self, f: Callable[..., Any], name: str, filter: Filter) -> None:
        """Calls `f(learn)` at an event, if the filter lets it through

        Args:
            f: a function of the Learner, and of what the event has to tell, if that is anything
            name: the event
            filter: which calls go through
        """
        ...
    @property
    def name(self) -> str:
        """By the event: `learn.on_after_batch`"""
        ...
    def _hear(self, **kwargs: Any) -> Any: ...
    def __repr__(self) -> str: ...
def takes_nothing(f: Callable[..., Any]) -> bool:
    """Is it sure that `f` has no parameter?"""
    ...
class either:
    """A method to be called on an object or on its class, whose first argument is the one or the other"""
    f: Callable[..., Any]
    __doc__: Any
    def __init__(self, f: Callable[..., Any]) -> None: ...
    def __get__(self, o: Any, cls: Any) -> Any: ...
def on(
    to: Any,
    name: str,
    every: int|None = None,
    once: int|None = None,
    when: Callable[..., Any]|None = None,
    marker: str|None = None,
) -> Callable[..., Any]:
    """A decorator for a function of the Learner: run it at event `name`. The conditions are fastNLP's.

    Args:
        to: the Learner, or its class
        name: the event, such as `event.after_batch`
        every: run at calls number every, 2*every, …
        once: run at this call only, counted from 1
        when: run when `when(filter, learn)` is true
        marker: on the class: which Learners; None is the next one, 'all' is all of them
    """
    ...
def off(to: Any, f: Callable[..., Any]|None = None) -> Any:
    """Take away what `on` added

    Args:
        to: the Learner, or its class
        f: a function that `on` took; None: all of them
    """
    ...
