# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Logs images at intervals: the inputs of the batch, or what a function makes of them"""
from collections.abc import Callable
from ..control.every_callback import EveryCallback
from torch import Tensor
from typing import Any

__all__ = ['ImageLogger', 'pictures', 'as_columns']
class ImageLogger(EveryCallback):
    """Logs images at intervals, for TensorBoard and other loggers"""
    n: Any
    def __init__(self, every: Any = '1ep', f: Callable[..., Any]|None = None, n: int = 8) -> None:
        """Logs images at intervals, for TensorBoard and other loggers

        Args:
            every: how often: text such as '500ba', a `Time`, a number of epochs, a function of the Learner
            f: function of the Learner that returns images (n, channels, height, width) by name
            n: without `f`: the number of inputs of the batch to log

        Raises:
            ValueError: `n` must be a number of images, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def cleanup(self) -> None: ...
    def act(self) -> None: ...
    def _inputs(self) -> Any: ...
def pictures(images: Tensor) -> list[Any]:
    """Return images as services take them

    Args:
        images: (n, channels, height, width): from 0 to 1, or bytes

    Returns:
        of arrays (height, width, channels) of bytes
    """
    ...
def as_columns(rows: list[Any]) -> dict[Any, Any]:
    """Return a table as services take it

    Args:
        rows: of dictionaries

    Returns:
        `columns`, a list of names, and `data`, a list of lists
    """
    ...
