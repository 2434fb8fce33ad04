# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Calling the callbacks that listen to an event, in order"""
from collections.abc import Iterator
from contextlib import contextmanager
from ._fastcore import L
from .callback import Callback
from typing import Any, Self

__all__ = ['Dispatcher']
class Dispatcher:
    """Keeps callbacks and calls those that hear an event, in order"""
    mode: str|None
    cbs: L
    _heard: dict[Any, Any]
    _training: bool
    def __init__(self) -> None: ...
    @property
    def training(self) -> bool:
        """Whether the batches are for training, as `TrainEvalCallback` sets it"""
        ...
    @training.setter
    def training(self, v: bool) -> None: ...
    def rebind(self) -> None:
        """Forget who hears what; it is worked out anew at the next event"""
        ...
    def __call__(self, name: str, **kwargs: Any) -> None:
        """Call the callbacks that hear event `name`

        Args:
            name: an event, or a list of them
            kwargs: what the event has to tell: each method gets what it has parameters for
        """
        ...
    def _bind(self, name: Any) -> Any: ...
    def _still_hears(self, cb: Any, name: Any) -> Any: ...
    def _settled(self, e: Any, cb: Any, name: Any) -> bool:
        """Is `e` a Cancel of the scope that just ended? Then there is nothing left to cancel. If not, say where `e` came from."""
        ...
    @property
    def position(self) -> str:
        """Where the run is, for messages"""
        ...
    def isolated(self, name: str, exc: BaseException|None = None, reverse: bool = False) -> BaseException|None:
        """Let every callback hear `name`, whatever the others raise. Returns the first exception, with all later ones as its notes.

        Args:
            name: the event
            exc: what went wrong before
            reverse: last callback first
        """
        ...
    def add_cb(self, cb: Callback|type[Any]) -> Self:
        """Add a callback; one that belongs to another Learner moves here. Raises ValueError if its name would hide an attribute.

        Args:
            cb: a callback, or a class of which an instance is made
        """
        ...
    def remove_cb(self, cb: Callback|type[Any]) -> Self:
        """Remove a callback, or all of a class; one that is not there is no error. One that leaves in the middle of a run hears `cleanup` first.

        Args:
            cb: a callback, or a class of which all instances go
        """
        ...
    def _take_out(self, cbs: Any) -> None: ...
    def _goodbye(self, cb: Any, f: Any) -> None:
        """The `cleanup` of a callback that is no longer among the others"""
        ...
    def add_cbs(self, cbs: Callback|type[Any]|list[Any]|None) -> Self:
        """Add several callbacks, or one, or none"""
        ...
    def remove_cbs(self, cbs: Callback|type[Any]|list[Any]|None) -> Self:
        """Remove several callbacks, or one, or none"""
        ...
    def ordered_cbs(self, name: str|None = None) -> L:
        """The callbacks in the order in which they are called

        Args:
            name: an event: only the callbacks that have a method for it
        """
        ...
    @contextmanager
    def added_cbs(self, cbs: Callback|type[Any]|list[Any]|None) -> Iterator[Self]:
        """Have these callbacks for the length of a `with` block"""
        ...
    @contextmanager
    def removed_cbs(self, cbs: Callback|type[Any]|list[Any]|None) -> Iterator[Self]:
        """Do without these callbacks, instances or classes, for the length of a `with` block"""
        ...
def _unwound(handlers: Any, name: Any) -> Any:
    """In an event `after_…` the places of callbacks with `undo` are taken by them in reverse order"""
    ...
def _listener(cb: Any, name: Any, mode: Any) -> Any:
    """What to call for event `name` of `cb`: its method, or the callback itself where it decides on its own what to hear"""
    ...
