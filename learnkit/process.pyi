# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Rank, world size, and tensors gathered from every process"""
from torch import Tensor
from typing import Any

__all__ = ['rank_distrib', 'num_distrib', 'rank0_first', 'maybe_gather', 'to_detach']
def _in_group() -> Any: ...
def rank_distrib() -> int:
    """The number of this process among those that train together, 0 if alone"""
    ...
def num_distrib() -> int:
    """How many processes train together, 1 if alone"""
    ...
def rank0_first(func: Any, *args: Any, **kwargs: Any) -> Any:
    """`func(*args, **kwargs)`, in process 0 first, and when that is over in the others

    Args:
        func: what all processes do, one of them before the others
    """
    ...
def maybe_gather(x: Tensor) -> Tensor:
    """The parts of all processes, joined along dimension 0 (the mean, if `x` has no dimensions); `x` itself if alone"""
    ...
def to_detach(b: Any, cpu: bool = True, gather: bool = True) -> Any:
    """`b` with its tensors detached, gathered from all processes, on the CPU

    Args:
        b: nested tensors
        cpu: bring them to the CPU?
        gather: join the parts of all processes?
    """
    ...
