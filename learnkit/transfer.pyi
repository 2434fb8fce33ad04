# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Copies batches from the CPU to an accelerator on a stream of their own, while the accelerator computes"""
import torch
from collections.abc import Iterator
from torch import Tensor
from typing import Any

def is_plain_batch(b: Any) -> bool:
    """Returns whether `b` consists of tuples, lists, dicts and dense CPU tensors, and can be copied tensor by tensor

    Args:
        b: a batch
    """
    ...
def pin_leaf(o: Any) -> Any:
    """Returns `o` in pinned memory if it is a tensor, and as it is otherwise

    Args:
        o: a leaf of a plain batch
    """
    ...
def copy_stream(device: torch.device) -> torch.Stream|None:
    """Returns the stream for copies to `device`, `None` if it has none

    Args:
        device: where batches go
    """
    ...
class Transfer:
    """Moves batches to a device; to an accelerator from pinned memory, on a stream of their own"""
    device: torch.device
    stream: Any
    borrows: bool
    def __init__(self, device: torch.device) -> None:
        """Moves batches to a device; to an accelerator from pinned memory, on a stream of their own

        Args:
            device: where batches go
        """
        ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __call__(self, b: Any) -> Any:
        """Returns `b` on the device, for use on the current stream, which waits for the copy

        Args:
            b: a batch
        """
        ...
    def _copy(self, o: Any) -> Any: ...
class Borrowed:
    """Iterates over batches, and asks for the next one when the last one was read from the memory of the loader"""
    it: Iterator[Any]
    transfer: Transfer
    def __init__(self, it: Iterator[Any], transfer: Transfer) -> None:
        """Iterates over batches, and asks for the next one when the last one was read from the memory of the loader

        Args:
            it: of batches
            transfer: reads them
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
class Arrival:
    """A tensor on its way to the CPU"""
    event: Any
    copy: Any
    def __init__(self, t: Tensor) -> None:
        """A tensor on its way to the CPU

        Args:
            t: of any device
        """
        ...
    def get(self) -> Tensor:
        """Returns the tensor, when it is there"""
        ...
