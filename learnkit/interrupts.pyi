# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A signal such as Ctrl-C waits while the Learner is between two states, and is handled as soon as it is in one"""
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ['uninterrupted', 'interruptibly']
_marks: dict[Any, Any]
_handlers: dict[Any, Any]
_inside: dict[Any, Any]
waiting: list[Any]
patience: int
def _waits(frame: Any) -> Any:
    """Does a signal wait that arrives at `frame`?"""
    ...
def handle_or_wait(handler: Callable[..., Any], number: int, frame: FrameType|None) -> None:
    """Call the handler: now, or when the program is where it may be interrupted

    Args:
        handler: to be called with number and frame
        number: the number of a signal that has arrived
        frame: where the program was then
    """
    ...
def _receive(number: Any, frame: Any) -> None: ...
def _deliver() -> None: ...
def settle() -> None:
    """Handle the signals that wait, if they need not wait in the caller of the function that calls this"""
    ...
_signals: list[Any]
def _put_back() -> None: ...
class _Received:
    """Signals come to `_receive` in this block, unless it is inside of another one"""
    outermost: bool
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: Any) -> None: ...
def critical(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: signals wait while `f` runs. It costs nothing.

    Args:
        f: a function that is called in an uninterrupted one; it, or its caller, calls `settle` afterwards
    """
    ...
class _Block:
    """A context manager that is entered and left without an interruption"""
    inner: Any
    stack: Any
    def __init__(self, inner: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: Any) -> Any: ...
def uninterrupted(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: signals wait while `f` runs, except in what it calls `interruptibly`; of a block, at both its ends

    Args:
        f: a function, or a context manager made by `contextlib.contextmanager`
    """
    ...
def interruptibly(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `f`, and handle signals at once meanwhile; for what takes long in an uninterrupted function

    Args:
        f: a function
        args: its positional arguments
        kwargs: its keyword arguments
    """
    ...
