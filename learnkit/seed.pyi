# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Seeding every random number generator, and saving and restoring their states"""
from collections.abc import Iterator
from contextlib import contextmanager
from torch import Tensor
from typing import Any

__all__ = ['set_seed', 'get_random_states', 'set_random_states', 'no_random']
def set_seed(s: int, reproducible: bool = False) -> None:
    """Set the seeds of Python, NumPy, PyTorch and all devices

    Args:
        s: the seed
        reproducible: also tell cuDNN to choose its algorithms in a repeatable (slower) way?
    """
    ...
def _device_rngs() -> dict[Any, Any]:
    """Name and module of each kind of accelerator that is here (not in a forked process, where CUDA cannot be used)"""
    ...
def get_random_states() -> dict[Any, Any]:
    """The states of all random number generators, to give to `set_random_states`"""
    ...
def set_random_states(
    random_state: Any = None,
    numpy_state: Any = None,
    torch_state: Tensor|None = None,
    torch_cuda_state: list[Any]|None = None,
    torch_xpu_state: list[Any]|None = None,
    torch_mps_state: list[Any]|None = None,
) -> None:
    """Put the random number generators into the states that `get_random_states` gave

    Args:
        random_state: Python's
        numpy_state: NumPy's
        torch_state: PyTorch's, on the CPU
        torch_cuda_state: one state per device, and so below
    """
    ...
@contextmanager
def no_random(seed: int = 42, reproducible: bool = False) -> Iterator[None]:
    """Run the block with the random seed `seed`, and put all generators back afterwards

    Args:
        seed: the seed inside
        reproducible: as in `set_seed`
    """
    ...
