# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A loader whose order depends on a seed and the epoch alone, and that can begin at any batch"""
from collections.abc import Iterator, Sequence
from .sampler import ReplaySampler
from typing import Any, Self

__all__ = ['SeededLoader']
def _generators(dl: Any) -> Any:
    """Those that the data draw from, and the functions that make items and batches of them"""
    ...
def _from_torchdata(dl: Any) -> Any: ...
def _is_indexed(dl: Any) -> Any:
    """Whether a `DataLoader` with a `ReplaySampler` can stand in for `dl`"""
    ...
class SeededLoader:
    """The batches of `dl` in an order that depends on `seed` and the epoch alone, from any batch on"""
    replay: ReplaySampler|None
    stateful: Any
    data_state: dict[Any, Any]|None
    it: Any
    restored: Any
    limit: int|None
    dl: Any
    seed: Any
    epoch: int
    start: int
    draws: Any
    loader: Any
    def __init__(self, dl: Any, seed: Any) -> None:
        """The batches of `dl` in an order that depends on `seed` and the epoch alone, from any batch on

        Args:
            dl: any iterable of batches
            seed: for shuffling and augmentation: a number, or several in a tuple
        """
        ...
    def _key(self, i: Any) -> tuple[Any, ...]: ...
    def _keys(self, batch: Any) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    @property
    def indexed(self) -> bool:
        """Whether a position is found by counting; if not, the data knows its position, or is iterated over again"""
        ...
    @property
    def swaps_rng(self) -> bool:
        """Whether the random number generators of this process are swapped while it makes a batch"""
        ...
    @property
    def batch_indices(self) -> Sequence[Any]|None:
        """The indices of each batch of the epoch, from `start` on; `None` where they are not known"""
        ...
    def seek(self, epoch: int, start: int = 0, state: dict[Any, Any]|None = None, limit: int|None = None) -> Self:
        """Moves to batch `start` of an epoch, and returns the loader itself

        Args:
            epoch: the number of the epoch
            start: the number of its first batch
            state: what `position` returned there, if anything
            limit: how many batches of the epoch are needed; None: all
        """
        ...
    def in_pass(self, done: int) -> int:
        """Returns how many batches of the present pass over the data are done; another kind of epoch may take several

        Args:
            done: how many batches of the epoch are done
        """
        ...
    @property
    def rereads(self) -> int:
        """How many batches the next pass reads again, and drops"""
        ...
    def _record(self, sampler: Any, seed: Any) -> Any: ...
    def _replayed(self, seed: Any) -> Any: ...
    def _streamed(self, seed: Any) -> Any: ...
    def _restore(self, state: Any) -> None: ...
    def position(self, done: int) -> dict[Any, Any]|None:
        """Returns the `state` that `seek` needs to continue from here; `None` if it needs none

        Args:
            done: how many batches of this epoch are trained; 0: the epoch is over
        """
        ...
