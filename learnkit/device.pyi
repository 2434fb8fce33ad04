# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Where tensors live, and how a batch gets there"""
import torch
from typing import Any

__all__ = ['default_device', 'to_device', 'to_cpu']
def default_device(use: bool|None = None) -> torch.device:
    """The accelerator of this machine if there is one, otherwise the CPU

    Args:
        use: None: the accelerator if there is one; True: it must be there; False: the CPU
    """
    ...
def to_device(b: Any, device: torch.device|str|int|None = None, non_blocking: bool = False) -> Any:
    """`b` with its tensors on `device`

    Args:
        b: a batch
        device: where to; `None` is `default_device()`
        non_blocking: don't wait for the copy (of use from pinned memory only)
    """
    ...
def to_cpu(b: Any) -> Any:
    """`b` with its tensors on the CPU"""
    ...
