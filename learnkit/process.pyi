# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Distributed training: the rank of this process, and tensors gathered from all processes"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from torch import Tensor
from typing import Any

__all__ = ['rank_distrib', 'num_distrib', 'rank0_first', 'maybe_gather', 'gather_objects', 'from_first', 'largest',
           'join_turns', 'undivided', 'alone', 'to_detach']
_alone: Any
_initialized: Any
def in_group() -> bool:
    """Is this process one of several, and does it know of the others?"""
    ...
def shared_store() -> Any:
    """Return the store by which the processes of the group found each other"""
    ...
def rank_distrib() -> int:
    """Returns the rank of this process, 0 without distributed training"""
    ...
def num_distrib() -> int:
    """Returns the world size: how many processes train together, 1 without distributed training"""
    ...
def rank0_first(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `func` in process 0 first, and when it is finished there, in all other processes

    Args:
        func: the function, called in every process
        args: passed to `func`
        kwargs: passed to `func`
    """
    ...
def _all_gather(x: Any, sizes: Any) -> list[Any]:
    """The tensors of all processes, of which the one of rank i has length `sizes[i]`: padded, sent, and cut again"""
    ...
_wholes: list[Any]
def num_parts() -> int:
    """Returns among how many processes the work is divided: all of them, or 1 in a block of `undivided`"""
    ...
def maybe_gather(x: Tensor|None) -> Tensor|None:
    """Concatenates the tensors of all processes, or averages scalars; raises ValueError if their shapes don't fit

    Args:
        x: the tensor of this process; they may differ in their first dimension only; None: it has none

    Raises:
        ValueError: The tensors of the processes must agree after the first dimension, and in their dtypes, but are … …
    """
    ...
def gather_objects(x: Any) -> list[Any]:
    """Returns what all processes have, by rank; every process must call it

    Args:
        x: what this process has; it is pickled
    """
    ...
def from_first(x: Any) -> Any:
    """Returns what process 0 has; every process must call it

    Args:
        x: what process 0 has; it is pickled, what others have is not used
    """
    ...
def _gather(x: Any) -> Any: ...
def largest(x: float) -> float:
    """Returns the largest `x` of all processes; every process must call it

    Args:
        x: a number

    Raises:
        ValueError: The tensors of the processes must agree after the first dimension, and in their dtypes, but are … …
    """
    ...
def join_turns(x: Tensor|None, sizes: list[int]) -> Tensor|None:
    """Concatenates the tensors of all processes in the order of their batches: the first of each, the second of each, …

    Args:
        x: what this process has, one part after the other; None: nothing
        sizes: of its parts, one for each of its batches

    Raises:
        ValueError: The tensors of the processes must agree after the first dimension, and in their dtypes, but are … …
    """
    ...
@contextmanager
def undivided() -> Iterator[None]:
    """In this block every process has all of the data, so that `maybe_gather` returns what it is given"""
    ...
@contextmanager
def alone() -> Iterator[None]:
    """In this block the process does not know of others: it waits for none of them"""
    ...
def to_detach(b: Any, cpu: bool = True, gather: bool = True) -> Any:
    """Detaches the tensors in `b`, gathers them from all processes, and moves them to the CPU

    Args:
        b: tensors in nested containers
        cpu: move the tensors to the CPU?
        gather: concatenate the tensors of all processes?
    """
    ...
