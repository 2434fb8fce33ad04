# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A buffer for numbers on the device, which are read all at once"""
from torch import Tensor
from typing import Any

__all__ = ['ScalarBuffer']
def to_number(v: Any) -> Any:
    """Convert a tensor or array with one element to the Python number in it; return anything else unchanged

    Args:
        v: a number, tensor or array
    """
    ...
_cpu: Any
class ScalarBuffer:
    """A buffer of numbers that stay on their device until `drain` reads them"""
    every: int
    new: list[Any]
    packed: list[Any]
    device: Any
    def __init__(self, every: int = 1024) -> None:
        """A buffer of numbers that stay on their device until `drain` reads them

        Args:
            every: after how many numbers to pack them into one tensor
        """
        ...
    def append(self, x: Tensor|int|float) -> None:
        """Add `x`, without waiting for the device

        Args:
            x: a number; of a tensor with several elements, their mean
        """
        ...
    def pack(self) -> None:
        """Stack the new numbers into one tensor; those on the CPU become Python's, as reading them does not wait"""
        ...
    def drain(self) -> list[Any]:
        """Return all numbers since the last call, as Python's, and empty the buffer; waits for the device"""
        ...
