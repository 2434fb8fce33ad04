# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A few validation batches before training begins, so that an error in the validation shows at once"""
from ..callback import Callback
from typing import Any

__all__ = ['SanityCheck']
class SanityCheck(Callback):
    """Validates `n` batches before training begins; `results` are the loss and the metrics, by name"""
    results: dict[Any, Any]|None
    n: Any
    ds_idx: int
    def __init__(self, n: int = 2, ds_idx: int = 1) -> None:
        """Validates `n` batches before training begins; `results` are the loss and the metrics, by name

        Args:
            n: how many batches to validate
            ds_idx: the number of the loader in `dls`

        Raises:
            ValueError: `n` must be a number of batches, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def _snapshot(self, dl: Any) -> Any:
        """Of all that a run through `dl` changes in the model and in the loader, random numbers, the states of callbacks"""
        ...
    def _names(self) -> Any: ...
    def _monitors(self) -> list[Any]: ...
