# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A thread that passes rows to a service in order; what the service does not take waits, and is sent again"""
from collections.abc import Callable
from typing import Any

__all__ = ['Sender']
class Sender:
    """Calls `send` with what is put into it, in a thread and in order, until that works; keeps what is not safe yet"""
    max_wait: float
    idle: float
    send: Callable[..., Any]
    safe: Any
    failed: Any
    most: int
    sent: Any
    waiting: Any
    error: Any
    hurry: bool
    thread: Any
    changed: Any
    lock: Any
    def __init__(
        self,
        send: Callable[..., Any],
        safe: Callable[..., Any]|None = None,
        failed: Callable[..., Any]|None = None,
        most: int = 1,
    ) -> None:
        """Calls `send` with what is put into it, in a thread and in order, until that works; keeps what is not safe yet

        Args:
            send: called with the first things; returns how many it sent (None: all), or raises
            safe: returns whether a thing that was sent needs not be kept; None: all need not
            failed: called before what failed is tried again
            most: things that `send` is called with, at most
        """
        ...
    def put(self, *things: Any) -> None:
        """Put `things` at the end

        Args:
            things: what to send
        """
        ...
    def replace(self, *things: Any) -> None:
        """Drop all, and take `things` instead

        Args:
            things: to send when `put` is called
        """
        ...
    def take(self, key: Any, last: Any, seconds: float) -> None:
        """Be the one sender of this process to `key`: another one sends `last` instead of all that waits, and no more

        Args:
            key: what is sent to
            last: what another sender of this process still sends there
            seconds: it is waited for, at most
        """
        ...
    @property
    def kept(self) -> list[Any]:
        """All that is not safe yet, in order"""
        ...
    def wait(self, seconds: float) -> bool:
        """Wait until all is sent, and try at once what has failed; returns whether it is

        Args:
            seconds: at most; no longer than 5 if the last attempt failed
        """
        ...
    def _run(self) -> None: ...
    def _next(self) -> list[Any]: ...
    def _done(self, things: Any) -> float: ...
    def _failed(self, e: Any, delay: Any) -> Any: ...
_senders: Any
