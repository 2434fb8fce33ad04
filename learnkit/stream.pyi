# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The batches of one phase: callbacks limit, replace and wrap them before the first is fetched"""
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ['loader_len', 'BatchStream', 'Limited']
def loader_len(dl: Any) -> int|None:
    """Return the number of batches in `dl`, None if it does not know

    Args:
        dl: an iterable of batches
    """
    ...
class BatchStream:
    """The batches of a loader, for one phase"""
    skipped: int
    unfetched: tuple[int, int]
    ended: tuple[int, str|None]
    turns: Any
    """how several processes share the batches, if they do"""
    loader: Iterable[Any]
    start: int
    limit: Any
    wrappers: list[Any]
    it: Any
    counted: Callable[..., Any]|None
    n: int|None
    def __init__(self, loader: Iterable[Any], counted: Callable[..., Any]|None = None) -> None:
        """The batches of a loader, for one phase

        Args:
            loader: any iterable of batches
            counted: called with the number of batches, or None, whenever that changes
        """
        ...
    def _count(self) -> None: ...
    @property
    def indices(self) -> Any:
        """The indices of the last batch's items in the data set, if the iterator knows them, else None"""
        ...
    def stop_at(self, n: int) -> None:
        """End before batch number `n`. Raises RuntimeError if the first batch was fetched already.

        Args:
            n: no batch from this number on

        Raises:
            RuntimeError: `batches.stop_at` comes too late, after the first batch: call it in `before_train` or …
        """
        ...
    @property
    def whole(self) -> Iterable[Any]:
        """The loader of all batches, also of those that other processes do"""
        ...
    def share(self, loader: Iterable[Any], turns: Any) -> None:
        """Take the batches from `loader`, and count those of all processes where the stream is to end

        Args:
            loader: of the batches of this process
            turns: a `Turns`, which says how they share the batches of `self.loader`
        """
        ...
    def replace(self, loader: Iterable[Any]) -> None:
        """Take the batches from `loader` instead. Raises RuntimeError if the first batch was fetched already.

        Args:
            loader: any iterable of batches

        Raises:
            RuntimeError: `batches.replace` comes too late, after the first batch: call it in `before_train` or …
        """
        ...
    def wrap(self, f: Callable[..., Any]) -> None:
        """Pass the batches through `f`, the last one added outermost. Raises RuntimeError if the stream is open already.

        Args:
            f: from an iterator of batches to another

        Raises:
            RuntimeError: `batches.wrap` comes too late, after the first batch: call it in `before_train` or `before_validate`
        """
        ...
    def _check_new(self, what: Any) -> None: ...
    def open(self) -> None:
        """Begin the stream; `next` then returns the batches"""
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
class Limited:
    """An iterator that ends after `left` items, and does not ask for more"""
    it: Iterator[Any]
    left: int
    def __init__(self, it: Iterator[Any], left: int) -> None:
        """An iterator that ends after `left` items, and does not ask for more

        Args:
            it: of batches
            left: how many
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
