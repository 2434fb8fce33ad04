# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A thread that tells the other processes where this one is, for the message when one of them hangs"""
from threading import Thread
from typing import Any

_steps: dict[Any, Any]
def whereabouts(learn: Any, thread: int) -> str:
    """Return where in the loop a thread is: the handler that it is in, or the step of the loop

    Args:
        learn: a Learner, in a run
        thread: the thread that runs it
    """
    ...
def shared_store() -> Any:
    """Return the store by which the processes found each other"""
    ...
class Watch(Thread):
    """Says where this process is, for the others to read"""
    n: int
    learn: Any
    thread: int
    interval: Any
    over: Any
    store: Any
    def __init__(self, learn: Any, thread: int, interval: float) -> None:
        """Says where this process is, for the others to read

        Args:
            learn: the Learner
            thread: the thread that runs it
            interval: how often, in seconds
        """
        ...
    def run(self) -> None:
        """Write where the process is, until the end of the fit"""
        ...
    def end(self) -> None:
        """Stop watching"""
        ...
    def read(self, what: str) -> dict[int, str]:
        """Return what each process wrote, those left out that wrote nothing

        Args:
            what: what was written, such as 'at'
        """
        ...
    def fail(self, e: BaseException) -> None:
        """Tell the others what happened here

        Args:
            e: what was raised
        """
        ...
    def failures(self) -> str:
        """Return what failed in other processes, in words; empty if nothing did, or nobody can say"""
        ...
    def blame(self) -> str:
        """Return which process did not come, in words"""
        ...
    def everywhere(self, at: str) -> str:
        """Return at which point each process is; all of them ask

        Args:
            at: the point of the loop at which this process is
        """
        ...
