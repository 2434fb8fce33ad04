# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which shapes of batches a compiled program takes: one, or all that differ in some sizes"""
from typing import Any

_shape: Any
def batch_shapes(batch: tuple[Any, ...]) -> tuple[Any, ...]|None:
    """Returns the shapes of all tensors of a batch

    Args:
        batch: the inputs and targets of a batch

    Returns:
        None if they are not plain tensors, or require gradients of their own
    """
    ...
def takes(known: tuple[Any, ...], shapes: tuple[Any, ...]) -> bool:
    """Returns whether `known` includes `shapes`; a size of 0 or 1 is none that varies, as PyTorch compiles it apart

    Args:
        known: shapes, with None for each size that varies
        shapes: the shapes of a batch
    """
    ...
def widened(known: tuple[Any, ...], shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns shapes with the same dimensions that vary also where `shapes` differ from `known`

    Args:
        known: shapes, with None for each size that varies
        shapes: the shapes of a batch
    """
    ...
def told_shapes(known: tuple[Any, ...]) -> str:
    """Returns the shapes as a message has them

    Args:
        known: shapes, with None for each size that varies
    """
    ...
def find_shapes(known: list[Any], shapes: tuple[Any, ...]|None, most: int, dynamic: bool) -> tuple[Any, ...]|None:
    """Returns the entry of `known` that takes a batch, perhaps a new one; `None` if there is none and none may be added

    Args:
        known: shapes, with None for each size that varies; one may be added
        shapes: the shapes of a batch
        most: for how many shapes there may be programs; with `dynamic` sizes do not count
        dynamic: may sizes vary?
    """
    ...
def _dims(shapes: Any) -> Any: ...
def with_varying_sizes(batch: tuple[Any, ...], known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the tensors for the compiler, with marks where a size varies

    Args:
        batch: tensors: the inputs, or the targets, of a batch
        known: their shapes, with None for each size that varies
    """
    ...
