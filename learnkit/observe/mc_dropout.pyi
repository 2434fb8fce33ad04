# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Uncertainty: predict several times with dropout, and see how much the predictions differ"""
from ..callback import Callback
from typing import Any

__all__ = ['MCDropoutCallback']
_with_dropout: tuple[Any, ...]
class MCDropoutCallback(Callback):
    """Monte Carlo dropout: leaves dropout on in validation and prediction (Gal and Ghahramani, 2016)"""
    switched: tuple[Any, ...]|list[Any]
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    cleanup = after_validate
    def before_train(self) -> None: ...
