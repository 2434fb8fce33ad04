# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Keep what samplers, data sets and transforms report as their state; name what changes, and nobody keeps"""
from collections.abc import Iterator
from ..feed.seeded_loader import SeededLoader
from typing import Any

_within: tuple[Any, ...]
_samplers: tuple[Any, ...]
def _parts(o: Any, at: Any, seen: Any, depth: Any = 6) -> Iterator[Any]: ...
def data_parts(dl: Any) -> dict[str, Any]:
    """Return the objects that make the batches of `dl`, by names that tell where they are

    Args:
        dl: a loader
    """
    ...
class KeptData:
    """Keeps what the parts of a training loader report as their state"""
    data: SeededLoader
    begun: dict[Any, Any]
    parts: dict[Any, Any]
    def __init__(self, data: SeededLoader) -> None:
        """Keeps what the parts of a training loader report as their state

        Args:
            data: stands in for the loader
        """
        ...
    def begin(self) -> None:
        """Note the states at the beginning of an epoch"""
        ...
    def state_dict(self, done: int) -> dict[Any, Any]:
        """Return the states from which a run resumes here

        Args:
            done: how many batches of the epoch are done; 0: the epoch is over
        """
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`; raises ValueError if it is no such state

        Args:
            state: from `state_dict`

        Raises:
            ValueError: this is not the checkpoint of a run: the states of its data are …
            ValueError: the checkpoint does not fit … of the training data, a …: …
        """
        ...
_own: Any
def _numbers(o: Any) -> dict[Any, Any]: ...
def _differ(a: Any, b: Any) -> Any: ...
def _is_library(o: Any) -> bool: ...
def _may_lack(cb: Any) -> Any:
    """Is it a callback of the user's that leaves its state to `saves`?"""
    ...
def _tensors_in(v: Any) -> Any:
    """The tensors that modules and optimizers keep, also in a list, tuple or dictionary of them; None of anything else"""
    ...
def _trained(cb: Any) -> dict[Any, Any]:
    """How often what a callback trains, and does not save, was written to, by name"""
    ...
def _state_of(o: Any) -> Any:
    """What of `o`, a callback or a part of the data, may change and is not kept"""
    ...
class Unkept:
    """Notes the numbers in data and callbacks, and warns once of those that change and that no checkpoint keeps"""
    learn: Any
    warned: bool
    begin: dict[Any, Any]
    def __init__(self, learn: Any) -> None:
        """Notes the numbers in data and callbacks, and warns once of those that change and that no checkpoint keeps

        Args:
            learn: the Learner, in a fit
        """
        ...
    def _objects(self) -> list[Any]: ...
    def changed(self) -> list[tuple[Any, ...]]:
        """Return pairs of an object and the names of its numbers that have changed"""
        ...
    def warn(self) -> None:
        """Warn of what has changed, the first time that something has"""
        ...
def name_unkept(learn: Any) -> None:
    """Warn in one line of what is known not to resume bit for bit

    Args:
        learn: the Learner, in a fit that begins
    """
    ...
