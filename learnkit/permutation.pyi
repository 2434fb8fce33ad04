# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A random order of a data set that is computed position by position, where one that is stored would be too large"""
from collections.abc import Sequence
from torch import Tensor
from typing import Any

__all__ = ['Permutation', 'ComputedBatches']
_low: Any
def _mixed(x: Any, key: Any) -> Any:
    """Mix the bits of `x` with `key`: the last step of SplitMix64, with products modulo 2**64"""
    ...
class Permutation:
    """A random order of the numbers below `n`, computed where it is asked for"""
    n: int
    side: Any
    keys: list[Any]
    def __init__(self, n: int, seed: int) -> None:
        """A random order of the numbers below `n`, computed where it is asked for

        Args:
            n: how many
            seed: the order depends on it alone
        """
        ...
    def __call__(self, i: Tensor) -> Tensor:
        """Return the numbers at these positions

        Args:
            i: positions, from 0 to n-1
        """
        ...
    def _encrypt(self, i: Any) -> Any: ...
class ComputedBatches(Sequence[Any]):
    """The batches of an epoch in a computed order, each made when it is asked for"""
    order: Permutation
    bs: int
    numbers: range
    def __init__(self, order: Permutation, bs: int, numbers: range) -> None:
        """The batches of an epoch in a computed order, each made when it is asked for

        Args:
            order: of the items
            bs: items in a batch
            numbers: which batches
        """
        ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: Any) -> Any: ...
