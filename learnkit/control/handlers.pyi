# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Call a function at an event by one decorator: each time, every n-th time, once, or on a condition"""
from collections.abc import Callable
from ..callback import Callback
from .filter import Filter
from typing import Any

__all__ = ['OnCallback', 'WaitingHandler', 'marked_handlers']
class OnCallback(Callback):
    """Calls `f(learn)` at an event, if the filter lets the call through"""
    f: Callable[..., Any]
    at: Any
    filter: Filter
    def __init__(self, f: Callable[..., Any], name: str, filter: Filter) -> None:
        """Calls `f(learn)` at an event, if the filter lets the call through

        Args:
            f: a function of the Learner, and of what the event brings along, if anything
            name: the event
            filter: which calls go through
        """
        ...
    def _call(self, **kwargs: Any) -> Any: ...
    def _measure(self, k: Any, **kwargs: Any) -> Any: ...
    def __repr__(self) -> str: ...
    __str__ = __repr__
_waiting: list[Any]
class WaitingHandler:
    """A function that waits for a Learner; called with one, it returns its callbacks, as `Learner.on_create` wants it"""
    f: Callable[..., Any]
    name: str
    conditions: dict[Any, Any]
    marker: str|None
    def __init__(self, f: Callable[..., Any], name: str, conditions: dict[Any, Any], marker: str|None) -> None:
        """A function that waits for a Learner; called with one, it returns its callbacks, as `Learner.on_create` wants it

        Args:
            f: a function of the Learner
            name: the event
            conditions: arguments of the `Filter`, of which each Learner gets one
            marker: which Learners: None is the next one, 'all' is all of them
        """
        ...
    def callback(self) -> OnCallback:
        """Return a new callback that calls the function"""
        ...
    def __call__(self, learn: Any) -> list[Any]:
        """Args:
            learn: the new Learner
        """
        ...
    def add(self) -> None:
        """Begin to wait"""
        ...
    def remove(self) -> None:
        """Wait no longer"""
        ...
def marked_handlers(marker: str) -> list[Any]:
    """Return the functions that wait for `marker`, as callbacks for `Learner(..., cbs=)`; warns if there are none

    Args:
        marker: as in `Learner.on(..., marker=)`
    """
    ...
def has_no_parameters(f: Callable[..., Any]) -> bool:
    """Whether `f` certainly takes no argument

    Args:
        f: a function
    """
    ...
class hybrid_method:
    """A method that can be called on an object or on its class, and gets the one or the other as first argument"""
    f: Callable[..., Any]
    def __init__(self, f: Callable[..., Any]) -> None:
        """A method that can be called on an object or on its class, and gets the one or the other as first argument

        Args:
            f: the method
        """
        ...
    def __get__(self, o: Any, cls: Any) -> Any: ...
def on(
    to: Any,
    name: str,
    every: Any = None,
    once: int|None = None,
    when: Callable[..., Any]|None = None,
    marker: str|None = None,
) -> Callable[..., Any]:
    """Decorate a function of the Learner, to be called at event `name`. The conditions are those of `Filter`.

    Args:
        to: the Learner, or its class
        name: the event, such as 'after_batch' or `event.after_batch`
        every: a number of calls, or an interval of training such as '500ba'
        once: call number `once` only, counted from 1; True is the first
        when: when `when(filter, learn)` is true
        marker: on the class: which Learners; None is the next one, 'all' is all of them

    Raises:
        TypeError: `on` takes the event first: `@learn.on("after_batch")`
        TypeError: `marker` is for `Learner.on`: `learn.on` adds to this Learner
    """
    ...
def off(to: Any, f: Callable[..., Any]|None = None) -> Any:
    """Remove what `on` added, and return the Learner. Raises ValueError if there is no such function.

    Args:
        to: the Learner, or its class
        f: a function that `on` was given; None: all of them

    Raises:
        ValueError: … was not added here by `on`
    """
    ...
