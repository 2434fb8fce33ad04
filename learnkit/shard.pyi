# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Each process's part of the data in distributed training, and the results gathered from all processes"""
from collections.abc import Iterator
from torch.utils.data.distributed import DistributedSampler
from typing import Any

def distributed_sampler(dl: Any) -> DistributedSampler[Any]|None:
    """Returns the sampler that gives each process its own part of `dl`, `None` if there is none

    Args:
        dl: a loader
    """
    ...
def count_own_items(dl: Any) -> int|None:
    """Returns how many items of `dl` are not repeated ones in this process; `None` if no item is repeated

    Args:
        dl: a loader
    """
    ...
def _is_plain_sampler(s: Any) -> Any:
    """Does `s` sample every item once, in order or shuffled?"""
    ...
class SharedDraws(DistributedSampler[Any]):
    """Divides what another sampler draws in process 0"""
    draws: Any
    dataset: Any
    num_samples: Any
    total_size: Any
    def __init__(self, sampler: Any) -> None:
        """Divides what another sampler draws in process 0

        Args:
            sampler: of the items of a data set, or of batches of them; with a length
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
def shard_loader(dl: Any, seed: int = 0) -> Any:
    """Returns a loader of this process's part of `dl`; `dl` itself if it is sharded already; `None` if it cannot be

    Args:
        dl: a loader
        seed: the seed for shuffling, the same in all processes
    """
    ...
def _seen(x: Any) -> list[Any]:
    """What is in `x`, nested tensors and other objects, as far as two processes can compare it"""
    ...
def _equal(seen: Any) -> Any: ...
def _same_dataset(dl: Any) -> Any:
    """Is it the same in all processes? Its items are looked at if no worker reads them: a file may be opened for good"""
    ...
class Turns:
    """Every n-th of the batches for each of n processes, and as many for all of them: some are repeated at the end"""
    n_own: Any
    alike: Any
    limit: Any
    ready: Any
    """the batches of the phase that begins"""
    whole: Any
    batches: Any
    def __init__(self, whole: Any, batches: Any = None) -> None:
        """Every n-th of the batches for each of n processes, and as many for all of them: some are repeated at the end

        Args:
            whole: the loader that is divided
            batches: its sampler, of batches; None: the batches themselves are taken
        """
        ...
    @property
    def indexed(self) -> bool:
        """Are they indices of items, not items?"""
        ...
    def stop_at(self, n: int) -> int:
        """End before batch number `n`; returns how many batches that are for each process

        Args:
            n: no batch of all processes from this number on
        """
        ...
    def begin(self) -> None:
        """Begin a phase: the processes compare their data, and process 0 tells what is drawn; all of them call it"""
        ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def _drawn(self, it: Any) -> Any:
        """What process 0 draws, unless the order is that of the data set"""
        ...
    def _in_turn(self, it: Any) -> Iterator[Any]: ...
    def sizes(self) -> list[int]:
        """Returns how many items each batch has, also those of other processes"""
        ...
def take_turns(dl: Any) -> tuple[Any, Turns]:
    """Returns a loader of every n-th batch of `dl` for each of n processes, and its `Turns`

    Args:
        dl: any iterable of batches
    """
    ...
def merge_shards(shards: list[Any]) -> tuple[list[Any], list[Any]]:
    """Merges the results of several processes: returns all indices in order, and the results for them

    Args:
        shards: for each process the indices of its items, and a list of nested results for them
    """
    ...
def gather_shards(idxs: list[Any], res: list[Any]) -> tuple[list[Any], list[Any]]:
    """Gathers the results of all processes, in each of them: returns all indices in order, and the results for them

    Args:
        idxs: the indices of this process's items
        res: nested results for these items
    """
    ...
