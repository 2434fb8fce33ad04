# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Means of gradients over processes, added in an order that does not depend on how many processes there are"""
from torch import Tensor
from typing import Any

def merged(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the means and sums of both; the memory of both is used for it

    Args:
        a: means and sums, of which the last is the weight
        b: the same of what comes after it
    """
    ...
class MergeTree:
    """Merges what is pushed, neighbours first: a binary tree over all parts"""
    n: Any
    parts: list[Any]
    def __init__(self) -> None: ...
    def push(self, means: Tensor, sums: Tensor) -> None:
        """Add a part, and merge the branches that it completes

        Args:
            means: of the next part
            sums: of which the last is its weight
        """
        ...
    def total(self) -> tuple[Tensor, Tensor]:
        """Return the means and sums of all parts"""
        ...
def merge_all(parts: list[Any]) -> tuple[Tensor, Tensor]:
    """Return the means and sums of all `parts`, by a `MergeTree`

    Args:
        parts: means and sums, in order
    """
    ...
def merge_processes(means: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    """Return the means and sums of all processes, merged in the order of their ranks, in each of them

    Args:
        means: of this process
        sums: of which the last is the weight
    """
    ...
