# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Train and validate on the same few batches, to see whether the model can learn at all"""
from ..callback import Callback
from typing import Any

__all__ = ['OverfitBatches']
class OverfitBatches(Callback):
    """Trains on the first `n` batches only, in every epoch, and validates on them (Lightning's `overfit_batches`)"""
    first_batches: list[Any]|None
    n: Any
    def __init__(self, n: int = 1) -> None:
        """Trains on the first `n` batches only, in every epoch, and validates on them (Lightning's `overfit_batches`)

        Args:
            n: how many batches

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def cleanup(self) -> None: ...
