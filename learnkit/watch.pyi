# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A thread that tells the other processes where this one is, for the message when one of them hangs"""
from collections.abc import Iterable, Iterator
from threading import Thread
from types import FrameType
from typing import Any

_steps: dict[Any, Any]
_libraries: set[Any]
def frames_of(thread: int) -> Iterator[FrameType]:
    """The frames of a thread, the innermost first

    Args:
        thread: its `get_ident()`
    """
    ...
def module_of(frame: FrameType) -> str:
    """The name of the module in which a frame's code is

    Args:
        frame: of a call
    """
    ...
def whereabouts(frames: list[Any]) -> str:
    """Return where a thread is: the handler that it is in, the step of the loop, or the line of a script

    Args:
        frames: those of a thread
    """
    ...
_waiting: tuple[Any, ...]
class Watch(Thread):
    """Says where this process is, for the others to read, as long as it is in this group"""
    interval: float
    silence: float
    n: int
    store: Any
    thread: Any
    over: Any
    group: Any
    rank: Any
    places: Any
    heard: dict[Any, Any]
    def __init__(self) -> None: ...
    def begin_fit(self) -> None:
        """Watch this thread, in a fit that begins"""
        ...
    def run(self) -> None:
        """Write where the process is, until it leaves the group"""
        ...
    def _say(self, *what: Any) -> bool: ...
    def end(self) -> None:
        """Stop, and say that this process ends"""
        ...
    def listen(self) -> None:
        """Hear where the processes are"""
        ...
    def gone(self, silence: float) -> list[int]:
        """Return which processes have ended, as far as this one has heard

        Args:
            silence: seconds without a word, since this process has listened
        """
        ...
    def stuck(self, seconds: float) -> list[int]:
        """Return which processes wait for others, as far as this one has heard

        Args:
            seconds: that they have waited elsewhere
        """
        ...
    def wait(self, work: Any, timeout: float) -> None:
        """Wait for the others in a collective; raises RuntimeError if that takes too long, or if they are stuck elsewhere

        Args:
            work: a collective that has begun
            timeout: seconds
        """
        ...
    def describe(self, ranks: Iterable[Any]) -> str:
        """Return where these processes are, in words

        Args:
            ranks: numbers of processes
        """
        ...
    def blame(self) -> str:
        """Return which process did not come to a point of a fit, in words"""
        ...
    def fail(self, e: BaseException, where: str) -> None:
        """Tell the others what happened here

        Args:
            e: what was raised
            where: the position of the run
        """
        ...
    def failures(self) -> str:
        """Return what failed in other processes, in words; empty if nothing did"""
        ...
    def everywhere(self, at: str) -> str:
        """Return at which point each process is; all of them ask

        Args:
            at: the point of the loop at which this process is, in words
        """
        ...
_watches: list[Watch]
def watching() -> Watch|None:
    """Return the `Watch` of this process, which begins now if there is none; None if it is in no group"""
    ...
def told(store: Any) -> dict[int, str]:
    """Return what each process wrote under its number, those left out that wrote nothing

    Args:
        store: that all processes share
    """
    ...
no_store: str
def by_others(e: BaseException) -> bool:
    """Is it because of another process?

    Args:
        e: what was raised
    """
    ...
