# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Releases the predictions of a training batch as soon as the loss is computed, to save memory"""
from ..callback import Callback

__all__ = ['FreeOutputs']
class FreeOutputs(Callback):
    """Releases the predictions of a training batch once its loss is computed, to save memory (Composer's `FreeOutputs`)"""
    def before_fit(self) -> None: ...
    def after_loss(self) -> None: ...
