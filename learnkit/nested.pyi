# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Tensors in nested tuples, lists and dictionaries: apply a function, list the leaves, concatenate, reorder"""
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ['is_listy', 'tuplify', 'detuplify', 'map_container', 'apply', 'leaves', 'item_find', 'is_item_list',
           'to_concat', 'nested_reorder']
def is_listy(x: Any) -> bool:
    """Returns whether `x` is a tuple, a list or an `L`

    Args:
        x: any object
    """
    ...
def _is_mapping(x: Any) -> Any:
    """Args:
        x: what an abstract class answers takes ten times as long, and most are tensors, tuples and lists
    """
    ...
def tuplify(o: Any) -> tuple[Any, ...]:
    """Converts `o` to a tuple: `()` for `None`, the items of a list or a generator, otherwise `(o,)`

    Args:
        o: an object, a list or generator of objects, or `None`
    """
    ...
def detuplify(x: Any) -> Any:
    """Returns the only item of `x`, `None` if `x` is empty, and `x` itself if it has several items

    Args:
        x: a tuple or list; anything else is returned as it is
    """
    ...
def _rebuild(x: Any, items: Any) -> Any:
    """A container of the type of `x` that holds `items`: a dict if `x` is a mapping, otherwise a list"""
    ...
def map_container(func: Callable[..., Any], x: Any) -> Any:
    """Applies `func` to the items of the container `x`, one level deep, and returns a container of the same type

    Args:
        func: called as `func(item)`
        x: a tuple, list or mapping
    """
    ...
def apply(func: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies `func` to every leaf of `x` and returns the results in the same nested structure

    Args:
        func: called as `func(leaf, *args, **kwargs)`
        x: tuples, lists and mappings, nested to any depth
        args: passed to `func`
        kwargs: passed to `func`
    """
    ...
def leaves(x: Any) -> Iterator[Any]:
    """Iterates over the leaves of `x`, from left to right

    Args:
        x: tuples, lists and mappings, nested to any depth
    """
    ...
def item_find(x: Any, idx: int = 0) -> Any:
    """Returns the first leaf of `x`; with `idx`, the `idx`-th item at each level

    Args:
        x: tuples, lists and mappings, nested to any depth
        idx: the position to take at each level
    """
    ...
def is_item_list(x: Any) -> bool:
    """Returns whether `x` is a list with one entry per item, such as file names, not one of tensors for a whole batch

    Args:
        x: any object
    """
    ...
def _concat_tensors(ts: Any, dim: Any) -> Any:
    """The tensors `ts` concatenated along `dim`; an `L` with one tensor per item if their shapes don't fit"""
    ...
def to_concat(xs: list[Any], dim: int = 0) -> Any:
    """Concatenates the results of several batches; raises ValueError if their mappings have different keys

    Args:
        xs: one result per batch, all of the same structure
        dim: the dimension of the items

    Raises:
        ValueError: Batches must have the same keys, but one has … and another ….
    """
    ...
def nested_reorder(t: Any, idxs: Any) -> Any:
    """Selects the items `idxs` from all tensors and `L`s in `t`; raises TypeError for a leaf that is neither

    Args:
        t: tensors in nested containers, as `to_concat` returns them
        idxs: the indices of the items to select, in this order: a tensor or a list of integers

    Raises:
        TypeError: Only tensors, and tuples, lists and mappings of them, can be ordered, not a ….
    """
    ...
