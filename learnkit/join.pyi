# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Joins the results of several processes, each of which has those of some batches, in the order of one process"""
from torch import Tensor
from typing import Any

def places(told: list[Any], order: Tensor|None = None) -> list[Tensor]:
    """Returns for each process the positions of its items in the result

    Args:
        told: for each process, pairs of a turn and the number of items that it had then
        order: for each item, as one process would have them, its position in the result; None: the same
    """
    ...
def join_items(x: Any, at: list[Any], dim: int = 0, room: int = ...) -> Any:
    """Returns the results of all processes, in each of them

    Args:
        x: this process's results: a tensor, a list with an entry for each item, or None
        at: for each process the positions of its items
        dim: the dimension of the items
        room: how many bytes are sent at once
    """
    ...
def _sent(x: Any, r: Any, shape: Any, dtype: Any) -> Any:
    """The tensor `x` of process `r`"""
    ...
def _join_lists(x: Any, at: Any) -> Any: ...
