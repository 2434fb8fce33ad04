# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A rehearsal before the expensive run: a few batches of each epoch, the same few again and again, or a look at the validation before anything is trained"""
from ..callback import Callback
from typing import Any

__all__ = ['OverfitBatches', 'SanityCheck']
class OverfitBatches(Callback):
    """Trains on the first `n` batches only, over and over, and validates on them"""
    kept: list[Any]|None
    n: Any
    def __init__(self, n: int = 1) -> None:
        """Trains on the first `n` batches only, over and over, and validates on them

        Args:
            n: how many batches
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def cleanup(self) -> None: ...
class SanityCheck(Callback):
    """Validates `n` batches before the fit; `results` are the loss and the metrics, by name"""
    results: dict[Any, Any]|None
    n: Any
    ds_idx: int
    def __init__(self, n: int = 2, ds_idx: int = 1) -> None:
        """Validates `n` batches before the fit; `results` are the loss and the metrics, by name

        Args:
            n: batches to validate
            ds_idx: which loader of `dls`
        """
        ...
    def before_fit(self) -> None: ...
    def _names(self) -> Any: ...
    def _monitors(self) -> list[Any]: ...
