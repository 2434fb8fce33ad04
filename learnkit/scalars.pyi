# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A buffer for numbers on the device, which are read all at once; `Series`: the numbers of a long run"""
from collections.abc import Iterator, Sequence
from torch import Tensor
from typing import Any

__all__ = ['ScalarBuffer', 'Series', 'GroupSeries']
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
class Series(Sequence[Any]):
    """Numbers that came one by one; when there are more than `most`, each second one is left out: see `every`"""
    most: Any
    new: list[Any]
    kept: Any
    n_read: Any
    _every: Any
    def __init__(self) -> None: ...
    def append(self, x: Tensor|int|float) -> None:
        """Add `x`; a tensor is read later, with many others

        Args:
            x: a number
        """
        ...
    def extend(self, xs: list[Any]) -> None:
        """Add several numbers

        Args:
            xs: numbers of Python
        """
        ...
    def settle(self) -> None:
        """Read the numbers that were added last"""
        ...
    @property
    def total(self) -> int:
        """How many numbers were added, those that were left out included"""
        ...
    @property
    def every(self) -> int:
        """How many numbers one that is kept stands for"""
        ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int|slice) -> Any: ...
    def __iter__(self) -> Iterator[float]: ...
    def __eq__(self, o: object) -> bool: ...
    def __add__(self, o: Sequence[Any]) -> list[Any]: ...
    def __radd__(self, o: Sequence[Any]) -> list[Any]: ...
    def __repr__(self) -> str: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what is kept, in 8 bytes a number"""
        ...
    def load_state_dict(self, state: dict[Any, Any]|list[Any]) -> None:
        """Continue from `state`

        Args:
            state: what `state_dict` returned, or all numbers in a list
        """
        ...
class GroupSeries(Sequence[Any]):
    """The values of the parameter groups, batch by batch: `values[i]` is the list of the groups' values"""
    columns: list[Any]
    def __init__(self) -> None:
        """The values of the parameter groups, batch by batch: `values[i]` is the list of the groups' values"""
        ...
    def append(self, row: list[Any]) -> None:
        """Add the values of a batch

        Args:
            row: the value of each group
        """
        ...
    @property
    def every(self) -> int:
        """How many batches a list stands for, as in a `Series`"""
        ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int|slice) -> list[Any]: ...
    def __iter__(self) -> Iterator[list[Any]]: ...
    def __eq__(self, o: object) -> bool: ...
    def __repr__(self) -> str: ...
    def state_dict(self) -> list[Any]:
        """Return the states of the groups"""
        ...
    def load_state_dict(self, state: list[Any]) -> None:
        """Continue from `state`

        Args:
            state: what `state_dict` returned, or a list with a list for each batch
        """
        ...
