# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The next batches are fetched and sent to the accelerator while it works on this one"""
import torch
from collections.abc import Iterator
from ..callback import Callback
from typing import Any

__all__ = ['Prefetch']
def leaves(b: Any) -> list[Any]:
    """What is in the nested batch `b`, from left to right"""
    ...
def is_ordinary(b: Any) -> bool:
    """Is `b` made of tuples, lists, dicts and dense tensors on the CPU, so that to move it is to move these tensors?"""
    ...
class Lane:
    """Copies batches to an accelerator on a stream of its own"""
    device: torch.device
    streams: Any
    stream: Any
    def __init__(self, device: torch.device) -> None: ...
    def send(self, b: Any) -> tuple[Any, ...]:
        """Begin to copy `b`: the copy, and the event that it is complete

        Args:
            b: a batch; see `is_ordinary`
        """
        ...
    def _copy(self, o: Any) -> Any: ...
    def receive(self, copy: Any, event: Any) -> Any:
        """`copy`, for the stream that computes now: it waits for the event, and the memory is kept until it is done"""
        ...
def lane_to(device: torch.device|None) -> Lane|None:
    """The lane to `device`, one for all who ask, as the allocator keeps memory for each stream; None if it has no streams"""
    ...
def stamps(b: Any) -> list[Any]:
    """What shows whether the batch `b` was changed: its leaves, and how often each was written to"""
    ...
def unchanged_since(before: list[Any], after: list[Any]) -> bool:
    """Are these `stamps` of the same things?"""
    ...
class Source:
    """Takes batches from an iterator, and sends copies of them on their way"""
    it: Iterator[Any]
    lane: Lane|None
    over: bool
    grad: Any
    def __init__(self, it: Iterator[Any], lane: Lane|None) -> None: ...
    def __call__(self) -> tuple[Any, ...]:
        """The next batch, and what was sent: its stamps, the copy, the event; `exhausted` and None at the end"""
        ...
class Ahead:
    """The batches of an iterator, of which a thread has fetched the next `n`"""
    source: Source
    n: int
    due: Any
    pool: Any
    sent: Any
    def __init__(self, it: Iterator[Any], n: int = 0, lane: Lane|None = None) -> None:
        """The batches of an iterator, of which a thread has fetched the next `n`

        Args:
            it: of batches
            n: how many to be ahead; 0: no thread
            lane: to send them on
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _fill(self) -> None: ...
    def arrived(self, b: Any) -> Any:
        """Its copy on the device; `b` if there is none, or if `b` has been changed

        Args:
            b: the last batch, as it is now
        """
        ...
    def close(self) -> None:
        """Drop what was fetched, and wait for the thread to end"""
        ...
    __del__ = close
_draw_first: tuple[Any, ...]
def made_elsewhere(dl: Any) -> bool:
    """Are the batches of `dl` made by workers, and is nothing drawn for them in this process once it has begun?"""
    ...
class Prefetch(Callback):
    """Fetches the next batches, and sends them to the accelerator, while it works on this one"""
    n: int
    thread: bool|None
    def __init__(self, n: int = 2, thread: bool|None = None) -> None:
        """Fetches the next batches, and sends them to the accelerator, while it works on this one

        Args:
            n: how many batches to be ahead
            thread: fetch in a thread? True: also data that is made in this process, if it draws no random numbers; None: if workers make it
        """
        ...
    def before_train(self) -> None: ...
    before_validate = before_train
    def after_fetch(self) -> None: ...
    def after_train(self) -> None: ...
    after_validate = after_train
    after_epoch = after_train
    cleanup = after_train
    def _ahead(self, it: Any) -> Any: ...
    def _how_many(self, dl: Any, it: Any) -> Any: ...
