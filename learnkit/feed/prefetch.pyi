# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Fetch the next batches in a thread while the present one is computed"""
from collections.abc import Iterator
from ..callback import Callback
from typing import Any

__all__ = ['Prefetch']
class BatchFetcher:
    """Takes batches from an iterator, and pins them for an accelerator"""
    it: Iterator[Any]
    pin: bool
    ended: bool
    grad: Any
    def __init__(self, it: Iterator[Any], pin: bool) -> None:
        """Takes batches from an iterator, and pins them for an accelerator

        Args:
            it: of batches
            pin: pin them?
        """
        ...
    def __call__(self) -> Any:
        """Returns a batch, or at the end `exhausted`"""
        ...
class PrefetchIterator:
    """Iterates over the batches of `it`, while a thread fetches the next `n`"""
    fetch: BatchFetcher
    n: int
    pending: Any
    pool: Any
    def __init__(self, it: Iterator[Any], n: int = 0, pin: bool = False) -> None:
        """Iterates over the batches of `it`, while a thread fetches the next `n`

        Args:
            it: of batches
            n: how many batches to fetch ahead; 0: no thread
            pin: pin them for an accelerator?
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _fill(self) -> None: ...
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
    """Fetches the next batches in a thread while the present one is computed"""
    n: Any
    thread: bool
    def __init__(self, n: int = 2, thread: bool = False) -> None:
        """Fetches the next batches in a thread while the present one is computed

        Args:
            n: how many batches to fetch ahead
            thread: also if this process makes the data? If not, only where workers do

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
            ValueError: `thread` must be True or False
        """
        ...
    def before_train(self) -> None: ...
    before_validate = before_train
    def after_train(self) -> None: ...
    after_validate = after_train
    after_epoch = after_train
    cleanup = after_train
    def _prefetched(self, it: Any) -> Any: ...
    def _n_ahead(self, dl: Any, it: Any) -> Any: ...
