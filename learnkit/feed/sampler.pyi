# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The order of an epoch, drawn from a sampler with a given seed, recorded in a list and replayed from any batch on"""
from collections.abc import Callable, Iterator, Sequence
from typing import Any

def seed_generators(o: Any, seed: int) -> None:
    """Seeds the random number generators among the attributes of `o`: PyTorch's, Python's, NumPy's

    Args:
        o: a sampler
        seed: for each of its generators
    """
    ...
def _begin_epoch(sampler: Any, seed: Any, epoch: Any) -> None: ...
computed_from: Any
def _is_long(s: Any) -> Any:
    """Does `s` make batches of so many items, each once, in random order?"""
    ...
def record_sampler(sampler: Any, seed: int, epoch: int, limit: int|None = None) -> Sequence[Any]:
    """Returns what `sampler` yields in this epoch; the global generators are left as they were

    Args:
        sampler: of indices, or of batches of them
        seed: to draw with
        epoch: for samplers that have `set_epoch`
        limit: how many entries are needed; None: all
    """
    ...
class ReplaySampler:
    """A sampler that yields what is in the list `recorded`"""
    recorded: Sequence[Any]
    key: Callable[..., Any]
    def __init__(self, key: Callable[..., Any]) -> None:
        """A sampler that yields what is in the list `recorded`

        Args:
            key: makes a key of the data set, or a list of keys, of each entry
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
def draw_sampler(sampler: Any, seed: int, epoch: int) -> Iterator[Any]:
    """Yields what `record_sampler` returns, and draws it when it is asked for

    Args:
        sampler: of indices, or of batches of them
        seed: to draw with
        epoch: for samplers that have `set_epoch`
    """
    ...
