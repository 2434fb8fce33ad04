# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Read, check, set and seed one random number generator of PyTorch, Python or NumPy"""
from typing import Any

def _bits(g: Any) -> Any:
    """The bit generator of a generator of NumPy; None of anything else"""
    ...
def is_generator(g: Any) -> bool:
    """Return whether `g` is a random number generator that has a state

    Args:
        g: anything
    """
    ...
def seed_generator(g: Any, seed: int) -> None:
    """Seed `g`

    Args:
        g: a random number generator
        seed: its new seed
    """
    ...
def generator_state(g: Any) -> Any:
    """Return the state of `g` as numbers and tensors, which a checkpoint can hold

    Args:
        g: a random number generator
    """
    ...
def set_generator(g: Any, state: Any) -> None:
    """Continue from `state`; raises ValueError if `g` cannot be in such a state

    Args:
        g: a random number generator
        state: as `generator_state` returned it, or as a file made lists of its tuples

    Raises:
        ValueError: this is no state of a generator of PyTorch: its position is not among its numbers
        ValueError: this is no state of a generator of NumPy: its position is not among its numbers
        ValueError: this is no state of a …: …
    """
    ...
def check_generator(g: Any, state: Any) -> None:
    """Raise ValueError if `g` cannot be in `state`; changes nothing

    Args:
        g: a random number generator
        state: what should be a state of it
    """
    ...
