# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Batches are nested, devices differ, and randomness has a state: the small functions that know it"""
from collections.abc import Iterator
from typing import Any

__all__ = ['is_listy', 'tuplify', 'detuplify', 'apply', 'item_find', 'to_concat', 'nested_reorder']
def is_listy(x: Any) -> bool:
    """Is `x` a tuple, a list or an `L`?"""
    ...
def tuplify(o: Any) -> tuple[Any, ...]:
    """`o` as a tuple: `()` for `None`, the items of a list or a generator, otherwise `(o,)`"""
    ...
def detuplify(x: Any) -> Any:
    """The only item of `x`, or `None` if it is empty, or `x` itself if it has more"""
    ...
def _like(x: Any, items: Any) -> Any:
    """A container of `x`'s type that holds `items`: a dict if `x` is a mapping, otherwise a list"""
    ...
def _map(func: Any, x: Any) -> Any:
    """`func` of each item of the container `x`, in a container like `x`"""
    ...
def apply(func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """`func` of every leaf of `x`, in containers like those of `x`

    Args:
        func: called as `func(leaf, *args, **kwargs)`
        x: tuples, lists, named tuples and mappings, nested as deep as you like
    """
    ...
def item_find(x: Any, idx: int = 0) -> Any:
    """The `idx`-th item of the `idx`-th item … of `x`, down to a leaf

    Args:
        x: nested containers
        idx: the position to take at each level
    """
    ...
def _leaves(x: Any) -> Iterator[Any]:
    """The leaves of `x`, from left to right"""
    ...
def _per_item(x: Any) -> bool:
    """Has the list `x` one entry per item, rather than tensors for a whole batch?"""
    ...
def _cat(ts: Any, dim: Any) -> Any:
    """Tensors joined along `dim`; an `L` of their rows if their shapes don't fit"""
    ...
def to_concat(xs: Any, dim: int = 0) -> Any:
    """The results of several batches as one

    Args:
        xs: a list with one result per batch, all of the same structure
        dim: the dimension of the items
    """
    ...
def nested_reorder(t: Any, idxs: Any) -> Any:
    """The items `idxs` of all tensors (and `L`s) in `t`

    Args:
        t: tensors in nested containers, as from `to_concat`
        idxs: the items wanted, in order: a tensor or a list of integers
    """
    ...
