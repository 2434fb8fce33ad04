# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Warn if a replaced part of the training loop does not fire an event that a callback handles"""
from ..callback import Callback
from typing import Any

__all__ = ['CheckEvents']
_parts: Any
_batch_events: Any
_watched: list[Any]
class CheckEvents(Callback):
    """Warns if a replaced part of the loop does not fire an event that a callback handles"""
    fired: set[Any]|None
    replaced: tuple[Any, ...]|list[Any]
    def before_fit(self) -> None: ...
    def after_train(self) -> Any: ...
    def _handlers_of(self, e: Any) -> list[Any]: ...
    def _warn(self, missing: Any) -> None: ...
    def cleanup(self) -> None: ...
