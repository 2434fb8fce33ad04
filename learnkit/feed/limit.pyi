# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A rehearsal before the expensive run: a few batches of each epoch, the same few again and again, or a look at the validation before anything is trained"""
from collections.abc import Iterator
from ..callback import Callback
from typing import Any

__all__ = ['LimitBatches', 'OverfitBatches', 'SanityCheck']
def check_amount(what: str, amount: Any) -> None:
    """Raise ValueError if `amount` is no number of batches

    Args:
        what: how it is called, for the message
        amount: 5 batches, the part 0.1 of them, or None: all
    """
    ...
def n_batches(amount: int|float, n: int|None) -> int:
    """How many batches `amount` is of `n`

    Args:
        amount: as in `check_amount`
        n: how many there are; None: nobody knows
    """
    ...
class First:
    """The first `n` of an iterator, which is not asked for more"""
    it: Iterator[Any]
    left: int
    def __init__(self, it: Iterator[Any], n: int) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
class LimitBatches(Callback):
    """Ends the phases of a fit after so many batches, validations made inside it too"""
    train: float|None
    valid: float|None
    active: Any
    to_limit: dict[Any, Any]
    def __init__(self, train: float|None = None, valid: float|None = None) -> None:
        """Ends the phases of a fit after so many batches, validations made inside it too

        Args:
            train: batches to train with in each epoch, or the part of them; None: all
            valid: the same for each validation
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _limit(self, amount: Any, training: Any) -> None: ...
    def before_fetch(self) -> None: ...
    def cleanup(self) -> None: ...
def rehearsal(text: str) -> LimitBatches:
    """What `LEARNKIT_LIMIT_BATCHES` asks for

    Args:
        text: the value of the environment variable
    """
    ...
class OverfitBatches(Callback):
    """Trains on the first `n` batches only, over and over, and validates on them"""
    n: int
    kept: list[Any]|None
    to_put: set[Any]
    def __init__(self, n: int = 1) -> None:
        """Trains on the first `n` batches only, over and over, and validates on them

        Args:
            n: how many batches
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _put(self, training: Any) -> None: ...
    def before_fetch(self) -> None:
        """Args:
            self: whoever has changed the loader since: these are the batches
        """
        ...
    def cleanup(self) -> None: ...
class SanityCheck(Callback):
    """Validates `n` batches before the fit; `results` are the loss and the metrics, by name"""
    results: dict[Any, Any]|None
    n: int
    ds_idx: int
    def __init__(self, n: int = 2, ds_idx: int = 1) -> None:
        """Validates `n` batches before the fit; `results` are the loss and the metrics, by name

        Args:
            n: batches to validate
            ds_idx: which loader of `dls`
        """
        ...
    def before_fit(self) -> None: ...
    def _names(self) -> Any: ...
    def _monitors(self) -> list[Any]: ...
