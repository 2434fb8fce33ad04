# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Calls the handlers of an event, in order; an event without handlers costs one look-up"""
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ._fastcore import L
from .callback import Callback
from typing import Any, Self

__all__ = ['Dispatcher']
class Dispatcher:
    """Keeps callbacks and calls their handlers of an event, in order"""
    mode: str|None
    """the kind of run: 'fit', 'validate', 'predict', 'lr_find', 'sanity'; None: no run"""
    cbs: Any
    _training: bool
    _heard: Any
    _heard_else: Any
    def __init__(self) -> None: ...
    @property
    def training(self) -> bool:
        """Whether the batches are for training, as `TrainEvalCallback` sets it"""
        ...
    @training.setter
    def training(self, v: bool) -> None: ...
    def rebind(self) -> None:
        """Forget the tables of handlers; they are made anew, event by event"""
        ...
    def __call__(self, name: str|list[Any], **kwargs: Any) -> None:
        """Call the handlers of event `name`; raises ValueError if there is no such event

        Args:
            name: an event, or a list of them
            kwargs: its arguments: each handler gets those that it has parameters for
        """
        ...
    def _bind(self, name: Any) -> Any: ...
    def ordered_cbs(self, name: str|None = None) -> L:
        """Return the callbacks in the order in which they are called

        Args:
            name: an event: only the callbacks that have a handler for it
        """
        ...
    def _in_order(self) -> Any: ...
    def _still_hears(self, cb: Any, name: Any) -> Any: ...
    def _settled(self, e: Any, cb: Any, name: Any) -> bool:
        """Is `e` a Cancel of the scope that just ended? If not, note where `e` came from."""
        ...
    @property
    def position(self) -> str:
        """Where the run is, for messages: ', epoch 2, batch 7'; empty outside of a run"""
        ...
    def isolated(self, name: str, exc: BaseException|None = None, reverse: bool = False) -> BaseException|None:
        """Call every handler of event `name`, even after one raised; return the first exception, later ones as its notes

        Args:
            name: an event
            exc: an exception that was raised before
            reverse: last callback first?
        """
        ...
    def add_cb(self, cb: Callback|type[Callback]) -> Self:
        """Add a callback, taking it from another Learner; raises TypeError if it is none, ValueError if its name is taken

        Args:
            cb: a callback, or a class of which an instance is made

        Raises:
            TypeError: … is no callback: pass an instance of a subclass of `Callback`, the class itself, or …
            TypeError: `order` is a number, by which callbacks are sorted, but that of … is …
            ValueError: a Learner has one … at a time, and this one has …: change the attributes of `learn.…`, or call …
            ValueError: this … was added already: add a new instance
            ValueError: … would be reached as `learn.…`, which is an attribute of the Learner: rename the class, for …
        """
        ...
    def remove_cb(self, cb: Callback|type[Callback]) -> Self:
        """Remove a callback, or all of a class, if there; in the middle of a run it is called for `cleanup` first

        Args:
            cb: a callback, or a class of which all instances are removed

        Raises:
            TypeError: what is removed is a callback or a class of them, such as `learn.progress`
        """
        ...
    def _take_out(self, cbs: Any) -> None: ...
    def add_cbs(self, cbs: Callback|type[Callback]|Iterable[Any]|None) -> Self:
        """Add callbacks, each as by `add_cb`

        Args:
            cbs: several callbacks, or one, or none
        """
        ...
    def remove_cbs(self, cbs: Callback|type[Callback]|Iterable[Any]|None) -> Self:
        """Remove callbacks, each as by `remove_cb`

        Args:
            cbs: several callbacks or classes, or one, or none
        """
        ...
    @contextmanager
    def added_cbs(self, cbs: Callback|type[Callback]|Iterable[Any]|None) -> Iterator[Self]:
        """Add these callbacks for the length of a `with` block

        Args:
            cbs: several callbacks or classes, or one, or none
        """
        ...
    @contextmanager
    def removed_cbs(self, cbs: Callback|type[Callback]|Iterable[Any]|None) -> Iterator[Self]:
        """Remove these callbacks for the length of a `with` block; afterwards each has its old place

        Args:
            cbs: several callbacks or classes, or one, or none
        """
        ...
_order: Any
def _listener(cb: Any, name: Any, mode: Any) -> Any:
    """What to call for event `name` of `cb`, if anything"""
    ...
def outside() -> int:
    """Return how many calls up the first one is that is not in the library: the `stacklevel` of a warning"""
    ...
