# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Fetch the next batches, and copy them to the accelerator, while it computes the present one"""
from collections.abc import Iterator
from ..callback import Callback
from .transfer import TransferStream
from typing import Any

__all__ = ['Prefetch']
def leaf_versions(b: Any) -> list[Any]:
    """Returns the leaves of `b`, each with how often it was written to, to see later whether the batch was changed

    Args:
        b: a batch
    """
    ...
def same_versions(before: list[Any], after: list[Any]) -> bool:
    """Returns whether both are of the same leaves, which were not written to in between

    Args:
        before: what `leaf_versions` returned,
        after: and what it returned later
    """
    ...
class BatchFetcher:
    """Takes batches from an iterator, and begins to copy them to the accelerator"""
    it: Iterator[Any]
    stream: TransferStream|None
    ended: bool
    grad: Any
    def __init__(self, it: Iterator[Any], stream: TransferStream|None) -> None:
        """Takes batches from an iterator, and begins to copy them to the accelerator

        Args:
            it: of batches
            stream: copies them; `None`: they are not copied
        """
        ...
    def __call__(self) -> tuple[Any, ...]:
        """Returns a batch, and its versions, stream, copy and event, or `None`; at the end `exhausted` and `None`"""
        ...
class PrefetchIterator:
    """Iterates over the batches of `it`, while a thread fetches the next `n`"""
    fetch: BatchFetcher
    n: int
    pending: Any
    pool: Any
    sent: Any
    def __init__(self, it: Iterator[Any], n: int = 0, stream: TransferStream|None = None) -> None:
        """Iterates over the batches of `it`, while a thread fetches the next `n`

        Args:
            it: of batches
            n: how many batches to fetch ahead; 0: no thread
            stream: copies them; `None`: they are not copied
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _fill(self) -> None: ...
    def received(self, b: Any) -> Any:
        """Returns the copy of `b` on the device; `b` itself if there is no copy, or if `b` was changed

        Args:
            b: the last batch, as it is now
        """
        ...
    def close(self) -> None:
        """Drops the batches that were fetched, and waits for the thread to end"""
        ...
    __del__ = close
_draw_at_start: tuple[Any, ...]
def made_by_workers(dl: Any) -> bool:
    """Returns whether workers make the batches of `dl`, and this process draws nothing for them after the beginning

    Args:
        dl: a loader
    """
    ...
class Prefetch(Callback):
    """Fetches the next batches, and copies them to the accelerator, while it computes the present one"""
    n: Any
    thread: bool|None
    def __init__(self, n: int = 2, thread: bool|None = None) -> None:
        """Fetches the next batches, and copies them to the accelerator, while it computes the present one

        Args:
            n: how many batches to fetch ahead
            thread: use a thread? True: also if this process makes the data; None: only if workers do

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
            ValueError: `thread` must be True, False or None
        """
        ...
    def before_train(self) -> None: ...
    before_validate = before_train
    def after_fetch(self) -> None: ...
    def after_train(self) -> None: ...
    after_validate = after_train
    after_epoch = after_train
    cleanup = after_train
    def _prefetched(self, it: Any) -> Any: ...
    def _n_ahead(self, dl: Any, it: Any) -> Any: ...
