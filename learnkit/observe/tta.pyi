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

        Raises:
            TypeError: aug must be a function of the inputs of a batch, such as `lambda x: x.flip(-1)`
        """
        ...
    def before_batch(self) -> None: ...
def _check_same_items(a: Any, b: Any) -> None:
    """Raise ValueError if the targets of two passes differ

    Raises:
        ValueError: the targets of two passes differ: the loader gives its items in another order each time, and …
    """
    ...
def _check_tta_args(n: Any, aug: Any, augs: Any, dl: Any) -> Any:
    """Returns the number of augmented passes; raises an error for arguments of `tta` that are wrong

    Raises:
        ValueError: tta needs a function that augments the inputs: pass `aug=`, such as `aug=lambda x: x.flip(-1)`, or …
        ValueError: `n` must be a number of augmented passes, 1 or more
        TypeError: tta reads the data …1 times, which a … cannot: pass a list of batches or a DataLoader
    """
    ...
