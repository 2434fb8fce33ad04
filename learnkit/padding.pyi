# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Leaves out of a validation the items that a `DistributedSampler` repeats"""
from .callback import Callback
from typing import Any

__all__ = ['DropPadding']
class DropPadding(Callback):
    """Leaves out of a validation the items that a `DistributedSampler` repeats to make the parts of all processes equally long"""
    order: Any
    run_train: bool
    own: Any
    left: Any
    def __init__(self) -> None:
        """Leaves out of a validation the items that a `DistributedSampler` repeats to make the parts of all processes equally long

        Args:
            self: how many items of each stream of batches are still to come
        """
        ...
    def before_validate(self) -> None: ...
    def before_batch(self) -> None: ...
    def _cut(self, t: Any, bs: Any) -> Any: ...
    def after_pred(self) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def __setstate__(self, d: Any) -> None: ...
