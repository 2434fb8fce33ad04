# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The length of a loader, a copy of a DataLoader, and a loader in the order of its data set"""
from typing import Any

__all__ = ['loader_len', 'in_order']
def loader_len(dl: Any) -> int|None:
    """The number of batches in `dl`, `None` if it does not know"""
    ...
def _copy_loader(dl: Any, **kwargs: Any) -> Any:
    """A `DataLoader` like `dl` but for `kwargs`; its workers live as long as one iteration"""
    ...
def _settle(s: Any) -> tuple[Any, ...]:
    """A sampler for what `s` samples, and the indices if it is not in order"""
    ...
def _ints(idxs: Any) -> list[Any]|None:
    """`idxs` as integers, `None` if they are something else: keys have no order"""
    ...
def _in_order_items(dl: Any) -> tuple[Any, ...]:
    """`in_order` of a `DataLoader` with `batch_size=None`"""
    ...
def _in_order_new(dl: Any) -> Any:
    """`in_order` of a loader with `new`"""
    ...
def in_order(dl: Any) -> tuple[Any, ...]:
    """All of `dl` in the order of the data set, and `None`; if it must be another order, also the indices

    Args:
        dl: a loader
    """
    ...
