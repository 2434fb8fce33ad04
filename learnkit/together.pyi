# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Let one process do what is to be done once, and all of them know whether it worked; wait for all, but not for ever"""
from collections.abc import Callable
from typing import Any

_made: dict[Any, Any]
_thread: Any
def file_group() -> Any:
    """Returns the group by which processes agree about files, None for one process; all must call it for the first time"""
    ...
def in_background(f: Callable[..., Any], *args: Any) -> None:
    """Calls `f`, which talks to the threads of the other processes that are in the background too

    Args:
        f: what to call, in a thread
        args: passed to `f`
    """
    ...
def in_all(f: Callable[..., Any]) -> list[Any]:
    """Calls `f` in each process; returns the results of all; raises the first error of any in all of them

    Args:
        f: of no arguments

    Raises:
        OSError: process … failed with …
    """
    ...
def in_first(f: Callable[..., Any]) -> Any:
    """Calls `f` in process 0, and returns its result in all; raises its error in all

    Args:
        f: of no arguments
    """
    ...
def meet(what: str, seconds: float = 60) -> None:
    """Waits for all processes; raises RuntimeError if one does not come

    Args:
        what: what they meet for, for the message
        seconds: how long to wait for the others

    Raises:
        RuntimeError: … puts together the parts of all … processes, so each of them must call it, and within … seconds …
    """
    ...
