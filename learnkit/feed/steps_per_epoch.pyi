# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`StepsPerEpoch(500)`: each epoch takes the next 500 batches of a stream that goes on"""
from collections.abc import Iterator
from ..callback import Callback
from .seeded_loader import SeededLoader
from typing import Any, Self

__all__ = ['OngoingLoader', 'StepsPerEpoch']
_used_up: str
class OngoingLoader(SeededLoader):
    """All passes over `dl`, one after the other: to iterate over it is to go on where the last iteration ended"""
    live: Any
    at_pass: Any
    used_up: Any
    fresh: bool
    failed: Any
    batch_indices: Any
    n: Any
    def __init__(self, dl: Any, seed: Any, n: int) -> None:
        """All passes over `dl`, one after the other: to iterate over it is to go on where the last iteration ended

        Args:
            dl: any iterable of batches
            seed: for shuffling and augmentation: a number, or several in a tuple
            n: how many batches an epoch has

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
        """
        ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _begin_pass(self) -> None: ...
    def _end_pass(self) -> None: ...
    def _record(self, sampler: Any, seed: Any) -> Any: ...
    @property
    def indices(self) -> Any:
        """The indices of the items of the last batch, None if they are not known"""
        ...
    def in_pass(self, done: int) -> int:
        """Returns how many batches of the present pass are done

        Args:
            done: how many batches of the epoch are done
        """
        ...
    def position(self, done: int) -> dict[Any, Any]|None:
        """Returns what the data reports as its position, if anything

        Args:
            done: how many batches of the epoch are done
        """
        ...
    def seek(self, epoch: int, start: int = 0, state: dict[Any, Any]|None = None, limit: int|None = None) -> Self:
        """Takes `state` for the pass to come, and returns the loader itself

        Args:
            epoch: the number of the epoch
            start: the number of its first batch
            state: what `position` returned there, if anything
            limit: how many batches of the epoch are needed
        """
        ...
    @property
    def rereads(self) -> int:
        """How many batches are read again, and dropped, to go on"""
        ...
class StepsPerEpoch(Callback):
    """Makes an epoch of `n` training batches, and goes on in the data with the next one (Keras' `steps_per_epoch`)"""
    data: OngoingLoader|None
    n: Any
    def __init__(self, n: int) -> None:
        """Makes an epoch of `n` training batches, and goes on in the data with the next one (Keras' `steps_per_epoch`)

        Args:
            n: how many training batches an epoch has

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_exhaust(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the position: the number of the pass over the data, and how many of its batches are done"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on there; raises ValueError if it is no such state

        Args:
            state: what `state_dict` returned

        Raises:
            ValueError: this is not the state of a StepsPerEpoch: …
        """
        ...
    def cleanup(self) -> None: ...
