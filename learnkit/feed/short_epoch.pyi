# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Train on a fraction of each epoch, to try a training script from end to end before the long run"""
from ..callback import Callback
from typing import Any

__all__ = ['ShortEpochCallback']
class ShortEpochCallback(Callback):
    """Ends each training and validation phase after the fraction `pct` of its batches (fastai's name)"""
    pct: Any
    short_valid: bool
    n: Any
    def __init__(self, pct: float = 0.01, short_valid: bool = True) -> None:
        """Ends each training and validation phase after the fraction `pct` of its batches (fastai's name)

        Args:
            pct: the fraction of the batches to keep, at most 1; at least one batch is kept
            short_valid: shorten the validation phases too?
        """
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    def _n_batches(self) -> Any: ...
