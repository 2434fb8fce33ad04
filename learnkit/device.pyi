# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The default device, and moving batches to a device"""
import torch
from typing import Any

__all__ = ['default_device', 'to_device', 'to_cpu']
def default_device(use: bool|None = None) -> torch.device:
    """Returns the accelerator of this machine, or the CPU; raises RuntimeError if `use=True` and there is no accelerator

    Args:
        use: None: the accelerator if there is one; True: the accelerator; False: the CPU

    Raises:
        RuntimeError: No accelerator was found. Write `default_device()` to use the CPU in this case.
    """
    ...
def to_device(b: Any, device: torch.device|str|int|None = None, non_blocking: bool = False) -> Any:
    """Moves the tensors in `b` to `device`; returns `b` itself if there is nothing to move

    Args:
        b: a batch: tensors in nested containers
        device: the device to move to; `None`: `default_device()`
        non_blocking: don't wait for the copies to finish; only for tensors in pinned memory
    """
    ...
def to_cpu(b: Any) -> Any:
    """Moves the tensors in `b` to the CPU

    Args:
        b: tensors in nested containers
    """
    ...
