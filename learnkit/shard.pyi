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
def shard_loader(dl: Any, seed: int = 0, train: bool = True) -> Any:
    """Returns a loader of this process's part of `dl`; `dl` itself if it is sharded already; `None` if it cannot be

    Args:
        dl: a loader
        seed: the seed for shuffling, the same in all processes
        train: for training? For validation no batch is repeated
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
