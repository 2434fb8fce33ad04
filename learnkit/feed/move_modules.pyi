# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Modules outside of the model follow it to its device: a teacher, a discriminator, a feature extractor"""
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['find_modules', 'MoveModules']
def find_modules(o: Any) -> list[nn.Module]:
    """Returns the modules among the attributes of `o`, also in lists, tuples, dicts and the arguments of a `partial`

    Args:
        o: any object
    """
    ...
class MoveModules(Callback):
    """Moves modules that are not part of the model to the model's device"""
    def before_fit(self) -> None: ...
