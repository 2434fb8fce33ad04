# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""How a fit, a validation or a prediction begins and ends, also one inside of another"""
from collections import Counter
from .loop import Loop
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ['null_logger', 'begun', 'thread_of', 'NullLogger', 'runs_elsewhere', 'Guard']
class NullLogger:
    """A logger that logs nothing; equal to any function called `noop`"""
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    def __eq__(self, o: object) -> bool: ...
null_logger: NullLogger
begun: Counter[int]
thread_of: WeakKeyDictionary[Loop, int]
def runs_elsewhere() -> tuple[int, bool]:
    """Return how many runs other threads have begun so far, of any Learner, and whether one of them is still open"""
    ...
class Guard:
    """Ends an outermost run: `after_exception` if something was raised, and `cleanup` always"""
    learn: Loop
    kept: dict[Any, Any]
    grad: Any
    def __init__(self, learn: Loop) -> None:
        """Ends an outermost run: `after_exception` if something was raised, and `cleanup` always

        Args:
            learn: the Learner of the run
        """
        ...
    def __enter__(self) -> None: ...
    def __exit__(self, kind: Any, e: BaseException|None, tb: Any) -> None: ...
def _wraps(new: Any, old: Any) -> Any:
    """Is `new` around `old`, with no parameters of its own?"""
    ...
