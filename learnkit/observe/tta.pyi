# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Predictions with dropout, to see how sure the model is, and of augmented inputs, to be right more often"""
from collections.abc import Callable
from ..callback import Callback
from typing import Any

__all__ = ['MCDropoutCallback', 'AugmentCallback']
_drop_inside: tuple[Any, ...]
class MCDropoutCallback(Callback):
    """Leaves dropout on in validation and prediction (Gal and Ghahramani, 2016, https://arxiv.org/abs/1506.02142)"""
    on: tuple[Any, ...]
    woken: tuple[Any, ...]|list[Any]
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    cleanup = after_validate
    def before_train(self) -> None:
        """Args:
            self: after a cancelled validation: by now everything is training
        """
        ...
class AugmentCallback(Callback):
    """Replaces the inputs of each batch by `aug(*inputs)`"""
    order: int
    aug: Callable[..., Any]
    def __init__(self, aug: Callable[..., Any]) -> None:
        """Replaces the inputs of each batch by `aug(*inputs)`

        Args:
            aug: from a batch's inputs to as many inputs; of a batch by name, from its dictionary to another
        """
        ...
    def before_batch(self) -> None: ...
def _same_items(a: Any, b: Any) -> None: ...
