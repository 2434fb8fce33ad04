# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A copy of a `DataLoader` with changes, and a loader in the order of its data set"""
from torch.utils.data import DataLoader
from typing import Any

__all__ = ['copy_loader', 'sequential_loader']
_of_items: set[Any]
_of_others: list[Any]
_of_workers: set[Any]
def _items_args(dl: Any, changes: Any) -> Any:
    """The arguments of `dl` that choose its items, less those that `changes` replace

    Raises:
        ValueError: The batches of this loader are chosen by a …: pass `batch_sampler`, or also `batch_size`.
    """
    ...
def _other_args(dl: Any, changes: Any) -> Any:
    """The arguments of `dl` that do not choose items; those for workers only if there are any"""
    ...
def copy_loader(dl: DataLoader[Any], **changes: Any) -> DataLoader[Any]:
    """Copies a `DataLoader`, with `changes`; raises ValueError if they contradict its batch sampler

    Args:
        dl: the loader to copy
        changes: arguments of `DataLoader` that differ in the copy

    Raises:
        ValueError: The batches of this loader are chosen by a …: pass `batch_sampler`, or also `batch_size`.
    """
    ...
def _as_indices(idxs: Any) -> list[Any]|None:
    """`idxs` as integers, `None` if they are something else: keys have no order"""
    ...
def _sequential_sampler(s: Any) -> tuple[Any, ...]:
    """A sampler for the items that `s` samples, and their indices if it does not sample them in order"""
    ...
def _sequential(dl: Any, **batching: Any) -> Any:
    """A copy of `dl` that reads in order; it is read once, so its workers need not persist"""
    ...
def _sequential_unbatched(dl: Any) -> tuple[Any, ...]:
    """`sequential_loader` of a `DataLoader` with `batch_size=None`"""
    ...
def _sequential_new(dl: Any) -> Any:
    """`sequential_loader` of a loader with `new`"""
    ...
def sequential_loader(dl: Any) -> tuple[Any, list[Any]|None]:
    """Returns a loader of all items of `dl` in the order of the data set, and `None`; in another order, also the indices

    Args:
        dl: a loader
    """
    ...
