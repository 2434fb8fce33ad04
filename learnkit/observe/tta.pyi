# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.tta`: average the predictions for several augmented views of each item"""
from collections.abc import Callable
from ..callback import Callback
from typing import Any

__all__ = ['AugmentCallback']
class AugmentCallback(Callback):
    """Replaces the inputs of each batch by `aug(*inputs)`"""
    aug: Callable[..., Any]
    def __init__(self, aug: Callable[..., Any]) -> None:
        """Replaces the inputs of each batch by `aug(*inputs)`

        Args:
            aug: function from the inputs to as many inputs; for inputs by name, from a dictionary to a dictionary
        """
        ...
    def before_batch(self) -> None: ...
def _check_same_items(a: Any, b: Any) -> None:
    """Raise ValueError if the targets of two passes differ"""
    ...
def _check_tta_args(n: Any, aug: Any, augs: Any, dl: Any) -> Any:
    """Returns the number of augmented passes; raises an error for arguments of `tta` that are wrong"""
    ...
