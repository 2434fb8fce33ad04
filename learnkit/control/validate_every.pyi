# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Validate every 500 batches, and add a row to the table"""
from .every_callback import EveryCallback
from ..history import History
from typing import Any

__all__ = ['ValidateEvery']
class ValidateEvery(EveryCallback):
    """Validates within the fit every so many batches, items or minutes, and records a row"""
    history: History
    ds_idx: int
    dl: Any
    done: Any
    over: bool
    def __init__(self, every: Any, ds_idx: int = 1, dl: Any = None) -> None:
        """Validates within the fit every so many batches, items or minutes, and records a row

        Args:
            every: how often: text such as '500ba' or '30m', a number of epochs, or a function of the Learner
            ds_idx: which loader of `dls`
            dl: this loader instead
        """
        ...
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def after_train(self) -> None: ...
    def after_epoch(self) -> None: ...
    def act(self) -> None:
        """Validate, announce the row, and write it into the table"""
        ...
    def _columns(self, columns: Any) -> tuple[Any, ...]:
        """The columns of the table into which the values are written, and those of the row"""
        ...
