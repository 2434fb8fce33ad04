# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Keep what a model and a loss change beside their `state_dict`: other buffers, counters, generators"""
from collections.abc import Iterator
from ..learner import Learner
from typing import Any

def _owners(o: Any, at: Any, seen: Any) -> Iterator[Any]:
    """The modules in `o`, and `o` itself if it is an object with attributes, by name"""
    ...
_no_state: Any
def _values(o: Any, all_tensors: Any) -> Any:
    """The attributes of `o` that may be a state by name: numbers, tensors, generators, and `None`, which one may become"""
    ...
def _read(v: Any) -> Any: ...
def _equal(a: Any, b: Any) -> Any: ...
def _put(o: Any, k: Any, v: Any) -> None:
    """Make the attribute `k` of `o` what was read"""
    ...
class KeptState:
    """Notes what the model and the loss of `learn` change outside of the model's `state_dict`, from now on"""
    learn: Learner
    loss: Any
    begin: Any
    def __init__(self, learn: Learner) -> None:
        """Notes what the model and the loss of `learn` change outside of the model's `state_dict`, from now on

        Args:
            learn: the Learner, in a fit
        """
        ...
    def _owners(self) -> dict[Any, Any]: ...
    def _now(self) -> dict[Any, Any]: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what has changed since the fit began, by name"""
        ...
    def check(self, state: Any) -> dict[str, tuple[Any, ...]]:
        """Return where each part of `state` belongs: object, attribute, value; raises ValueError if it is no such state

        Args:
            state: what should be a result of `state_dict`

        Raises:
            ValueError: this is not the checkpoint of a run: `kept` is …
            ValueError: this is not the checkpoint of a run: `…` is a …
        """
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Put back what had changed; raises ValueError if it is no such state, and then changes nothing

        Args:
            state: from `state_dict`
        """
        ...
