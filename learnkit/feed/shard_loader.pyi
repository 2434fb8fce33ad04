# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Each process's shards of every batch: the same batches in any number of processes"""
from collections.abc import Iterator
from .seeded_loader import SeededLoader
from ..stream import BatchStream
from typing import Any, NamedTuple

class Shards(NamedTuple):
    """The shards of a batch that are this process's own"""
    own: list[Any]
    """batches of the loader; at the end of an epoch perhaps none"""
    any: Any
    """one of the shards, own or not"""
class ShardLoader(SeededLoader):
    """The `Shards` of a process, where `n` consecutive batches of `dl` are the shards of one batch"""
    plan: list[Any]
    """of an epoch whose indices are known: the shards of each batch, as indices"""
    stream: BatchStream|None
    """the batches of the phase, which may be limited"""
    n: int
    size: Any
    first: Any
    def __init__(self, dl: Any, seed: Any, n: int, rank: int = 0, world: int = 1) -> None:
        """The `Shards` of a process, where `n` consecutive batches of `dl` are the shards of one batch

        Args:
            dl: any iterable of batches
            seed: for shuffling and augmentation: a number, or several in a tuple
            n: how many shards a batch has
            rank: the number of this process
            world: of so many
        """
        ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def seek(
        self,
        epoch: int,
        start: int = 0,
        state: dict[Any, Any]|None = None,
        limit: int|None = None,
    ) -> ShardLoader:
        """Moves to batch `start` of an epoch, and returns the loader itself

        Args:
            epoch: the number of the epoch
            start: the number of its first batch
            state: what `position` returned there, if anything
            limit: not used: `stream` knows how many batches are needed
        """
        ...
    def own(self, shards: list[Any]) -> list[Any]:
        """Returns those of this process

        Args:
            shards: of a batch; fewer than `n` at the end of an epoch
        """
        ...
    def _record(self, sampler: Any, seed: Any) -> list[Any]: ...
    @property
    def batch_indices(self) -> list[Any]|None:
        """The indices of this process's items in each batch, from `start` on; `None` where they are not known"""
        ...
class ShardIterator:
    """Makes `Shards` of the batches of a loader"""
    loader: ShardLoader
    it: Iterator[Any]
    at: Any
    def __init__(self, loader: ShardLoader, it: Iterator[Any]) -> None:
        """Makes `Shards` of the batches of a loader

        Args:
            loader: whose batches these are
            it: the batches: own ones if their indices are known, else all
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Shards: ...
    def _next(self) -> Any: ...
    def _take(self, n: Any) -> Any: ...
