# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`ReplayOnOOM` does a training batch that does not fit into memory again in smaller parts"""
from collections.abc import Callable
from ..optim.micro_batch import MicroBatch
from ..snapshot import Snapshot
from typing import Any

__all__ = ['ReplayOnOOM']
class ReplayOnOOM(MicroBatch):
    """Does a training batch again in smaller parts when it does not fit into memory"""
    name: str
    attempt: int
    stepping: bool
    snapshot: Snapshot|None
    start: tuple[Any, ...]
    def __init__(self, size: int|None = None, split: Callable[..., Any]|None = None) -> None:
        """Does a training batch again in smaller parts when it does not fit into memory

        Args:
            size: number of items in a part to begin with; None: the whole batch
            split: how to take a batch apart, as for `MicroBatch`
        """
        ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def after_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def cleanup(self) -> None: ...
    def wrap_batch(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does a training batch again, in smaller parts, until it fits into memory

        Args:
            do: does one batch
        """
        ...
    def _until_it_fits(self, do: Any) -> Any: ...
    def _try(self, do: Any) -> bool:
        """Run the batch; False if it did not fit"""
        ...
    def _begin(self) -> None: ...
    def _halve(self, e: Any) -> None: ...
    def _rewind(self) -> None:
        """Restore what was there when the batch began, and free memory"""
        ...
