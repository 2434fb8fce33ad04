# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Distributed prediction: each process's part of the data, and the results gathered from all processes"""
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
