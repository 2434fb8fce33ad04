# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Check tensors, losses and weights for values that are NaN or infinite, with one wait for the device or none"""
import torch
from collections.abc import Iterable
from typing import Any

__all__ = ['all_finite', 'weights_finite']
def elements(t: torch.Tensor) -> torch.Tensor:
    """Return the numbers in `t`: of a sparse tensor its values, of a distributed tensor the local part

    Args:
        t: of any layout
    """
    ...
def has_nan(t: Any) -> bool:
    """Return whether `t` is a tensor with a NaN in it; waits for the device

    Args:
        t: a tensor or anything else
    """
    ...
def all_finite(ts: Iterable[Any]) -> torch.Tensor:
    """Return whether every element of all tensors is finite, as a tensor on their device; does not wait for it

    Args:
        ts: tensors, on one device
    """
    ...
def nan_flag(flag: torch.Tensor|None, loss: torch.Tensor) -> torch.Tensor:
    """Return a tensor that is 0 as long as all losses were finite, and NaN from the first that was not

    Args:
        flag: the flag so far; None: begin
        loss: the loss of a batch
    """
    ...
def weights_finite(opt: Any) -> bool:
    """Check whether all trained weights are finite numbers; waits for the device

    Args:
        opt: the optimizer that trains them
    """
    ...
