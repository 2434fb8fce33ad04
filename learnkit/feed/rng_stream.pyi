# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Seeds derived from an epoch and an item, and random numbers for the data that are separate from those of the model"""
import torch
from collections.abc import Iterable, Iterator
from typing import Any

def hash_seed(*key: Any) -> int:
    """Returns a seed of 63 bits, a hash of `key`

    Args:
        key: what the seed is for, such as the seed of the run, an epoch and an index
    """
    ...
def seed_cpu(seed: int) -> None:
    """Seeds the generators that data sets draw from: Python's, NumPy's, and PyTorch's on the CPU

    Args:
        seed: for all three generators
    """
    ...
def get_cpu_states() -> tuple[Any, ...]:
    """Returns the states of the generators that `seed_cpu` seeds: Python's, PyTorch's, NumPy's"""
    ...
def set_cpu_states(python: tuple[Any, ...], torch_: torch.Tensor, numpy: dict[Any, Any]|None) -> None:
    """Restores the states that `get_cpu_states` returned

    Args:
        python: of Python's generator
        torch_: of PyTorch's
        numpy: of NumPy's, None if it was not imported
    """
    ...
class RngStream:
    """A separate stream of random numbers: each `with stream:` block continues where the previous one ended"""
    seed: int
    states: Any
    outer: Any
    def __init__(self, seed: int) -> None:
        """A separate stream of random numbers: each `with stream:` block continues where the previous one ended

        Args:
            seed: of the first block
        """
        ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: Any) -> None: ...
    def state_dict(self) -> tuple[Any, ...]:
        """Returns the states at the end of the last block, as numbers and tensors that a checkpoint can hold"""
        ...
    def load_state_dict(self, state: tuple[Any, ...]) -> None:
        """Continues from `state` in the next block; raises ValueError if a generator cannot be in such a state

        Args:
            state: as `state_dict` returned it, or as a file made lists of its tuples

        Raises:
            ValueError: this is no state of a generator of PyTorch: its position is not among its numbers
            ValueError: this is no state of a generator of NumPy: its position is not among its numbers
        """
        ...
class RngIterator:
    """Iterates over `batches`, which are made with the random numbers of `rng`"""
    ended: bool
    yielded: bool
    rng: RngStream
    batches: Iterable[Any]
    skip: int
    retry: bool
    it: Any
    def __init__(self, rng: RngStream, batches: Iterable[Any], skip: int = 0, retry: bool = False) -> None:
        """Iterates over `batches`, which are made with the random numbers of `rng`

        Args:
            rng: to draw from
            batches: of batches
            skip: how many batches are made and dropped at the beginning
            retry: begin again, once, if there is no batch?
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _next(self) -> Any: ...
