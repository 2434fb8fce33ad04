# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""RecomputeActivations: keep only the inputs of blocks, and compute the rest again in the backward pass"""
from collections.abc import Callable
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['RecomputeActivations']
def pick_modules(model: nn.Module, by: type[Any]|tuple[Any, ...]|Callable[..., Any]) -> list[nn.Module]:
    """Returns the modules with parameters that `by` says, the inner ones before those around them

    Args:
        model: where to look
        by: a class, several, or a function: module -> bool

    Raises:
        ValueError: no module of … is picked by `by=…`; it consists of …
    """
    ...
def _is_one(types: Any, m: Any) -> Any: ...
class RecomputeActivations(Callback):
    """Keeps only the inputs of some modules for the backward pass, and computes the rest again: activation checkpointing"""
    forwards: tuple[Any, ...]|list[Any]
    by: type[Any]|tuple[Any, ...]|Callable[..., Any]
    def __init__(self, by: type[Any]|tuple[Any, ...]|Callable[..., Any]) -> None:
        """Keeps only the inputs of some modules for the backward pass, and computes the rest again: activation checkpointing

        Args:
            by: which modules: a class, several, or a function: module -> bool
        """
        ...
    def before_fit(self) -> None: ...
    def cleanup(self) -> None: ...
