# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Meet before what all processes do together; let one do what is to be done once, and all know whether it worked"""
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
_numbers: Any
_all_came: str
def meet(what: str, advice: str = 'not in process 0 alone') -> None:
    """Waits for all processes; raises RuntimeError, in all, if one does not come, or comes for something else

    Args:
        what: what they meet for, for the message
        advice: what to write instead of calling it in one of them

    Raises:
        RuntimeError: … waited for the others, and …
    """
    ...
class _Meeting:
    warned: bool
    n: Any
    watch: Any
    what: Any
    advice: Any
    limit: Any
    came: Any
    store: Any
    before: Any
    def __init__(self, n: Any, watch: Any, what: Any, advice: Any) -> None: ...
    def settle(self, outcome: Any) -> None:
        """Args:
            outcome: the first one is that of all
        """
        ...
    def outcome(self, seconds: Any) -> Any:
        """What became of it, '' if that is not known after so many seconds"""
        ...
    def attend(self) -> Any:
        """Come, and wait until the outcome is known; returns it"""
        ...
    def there(self) -> dict[Any, Any]:
        """What those who have come came for"""
        ...
    def _look(self, waited: Any) -> None:
        """Say where the others are, once, and end it if one of them will not come"""
        ...
def _differences(said: Any) -> str:
    """Who says what, in words; '' if all say the same"""
    ...
