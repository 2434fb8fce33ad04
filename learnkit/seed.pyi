# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Seed all random number generators, and save and restore their states"""
from collections.abc import Iterator
from contextlib import contextmanager
from torch import Tensor
from typing import Any

__all__ = ['set_seed', 'plain_state', 'get_random_states', 'check_numpy_state', 'check_torch_state',
           'set_random_states', 'no_random', 'derived_seed']
def set_seed(s: int, reproducible: bool = False) -> None:
    """Seeds the random number generators of Python, NumPy, PyTorch and all devices

    Args:
        s: the seed
        reproducible: also make cuDNN choose deterministic algorithms, which may be slower?

    Raises:
        TypeError: a seed is a whole number
    """
    ...
def _device_rngs() -> dict[Any, Any]:
    """Name and module of each kind of accelerator that can be used here (CUDA cannot in a forked process)"""
    ...
def plain_state(o: Any) -> Any:
    """Returns `o` with lists for arrays, which a checkpoint can hold

    Args:
        o: a state of a generator of NumPy: numbers and arrays in dictionaries
    """
    ...
def get_random_states() -> dict[Any, Any]:
    """Returns the states of all random number generators, as arguments of `set_random_states`"""
    ...
def _at(o: Any, n: Any) -> Any:
    """Args:
        n: a position among `n` numbers?
    """
    ...
def check_numpy_state(state: Any) -> None:
    """Raise ValueError if a generator of NumPy would read outside of its memory in this state

    Args:
        state: what `get_state` of a generator returned, or the `state` of a bit generator

    Raises:
        ValueError: this is no state of a generator of NumPy: its position is not among its numbers
    """
    ...
def check_torch_state(state: Any) -> None:
    """Raise ValueError if a generator of PyTorch would read outside of its memory in this state

    Args:
        state: what `get_state` of a generator returned

    Raises:
        ValueError: this is no state of a generator of PyTorch: its position is not among its numbers
    """
    ...
def set_random_states(
    random_state: Any = None,
    numpy_state: Any = None,
    torch_state: Tensor|None = None,
    torch_cuda_state: list[Any]|None = None,
    torch_xpu_state: list[Any]|None = None,
    torch_mps_state: list[Any]|None = None,
    **others: list[Any]|None,
) -> None:
    """Restores the states of the random number generators that `get_random_states` returned; raises ValueError

    Args:
        random_state: the state of Python's generator; `None` here and below: leave it as it is
        numpy_state: of NumPy's generator
        torch_state: of PyTorch's generator on the CPU
        torch_cuda_state: one state per CUDA device
        torch_xpu_state: one state per XPU device
        torch_mps_state: a list of one state
        others: `torch_<type>_state` of other accelerators

    Raises:
        ValueError: this is no state of a generator of NumPy: its position is not among its numbers
        ValueError: this is no state of a generator of PyTorch: its position is not among its numbers
    """
    ...
@contextmanager
def no_random(seed: int = 42, reproducible: bool = False) -> Iterator[None]:
    """Runs a block with the random seed `seed`, and restores all random states afterwards

    Args:
        seed: the seed inside the block
        reproducible: as in `set_seed`
    """
    ...
def derived_seed(high: int = ...) -> int:
    """Returns a seed that follows from the state of PyTorch's generator, without drawing from it

    Args:
        high: the seed is less than this
    """
    ...
