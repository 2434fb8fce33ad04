# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`LimitBatches` shortens the phases of an epoch, for a rehearsal of a script; so does an environment variable"""
from .callback import Callback
from typing import Any

__all__ = ['n_batches', 'check_length', 'LimitBatches', 'ShortEpochCallback', 'limit_from_env']
def n_batches(amount: int|float, n: int|None) -> int:
    """Return how many batches `amount` is of `n`; raises ValueError for a fraction of an unknown number

    Args:
        amount: 5 batches, or the fraction 0.1 of them
        n: how many there are; None: nobody knows

    Raises:
        ValueError: … is a fraction of the batches, but the loader has no `len`: give a number of batches, or end the …
    """
    ...
def check_length(learn: Any, what: str) -> None:
    """Raise ValueError if nobody knows how many batches an epoch has

    Args:
        learn: the Learner, in a training phase
        what: what goes by the fraction, for the message

    Raises:
        ValueError: … goes by the fraction of the run that is done, but the training loader has no `len`: say how many …
    """
    ...
class LimitBatches(Callback):
    """Ends the phases of a fit after so many batches (pytorch-accelerated's `LimitBatchesCallback`)"""
    active: Any
    train: Any
    valid: Any
    def __init__(self, train: float|None = None, valid: float|None = None) -> None:
        """Ends the phases of a fit after so many batches (pytorch-accelerated's `LimitBatchesCallback`)

        Args:
            train: batches to train with in each epoch, or the fraction of them; None: all
            valid: the same for each validation

        Raises:
            ValueError: `train` must be a number of batches, 1 or more, or a fraction of them such as 0.1
            ValueError: `valid` must be a number of batches, 1 or more, or a fraction of them such as 0.1
            ValueError: LimitBatches() limits nothing: give `train`, `valid` or both
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _limit(self, amount: Any) -> None: ...
    def cleanup(self) -> None: ...
class ShortEpochCallback(LimitBatches):
    """Ends each training and validation phase of a fit after the fraction `pct` of its batches (fastai's name)"""
    def __init__(self, pct: float = 0.01, short_valid: bool = True) -> None:
        """Ends each training and validation phase of a fit after the fraction `pct` of its batches (fastai's name)

        Args:
            pct: the fraction of the batches to keep, more than 0 and at most 1 (at least one batch)
            short_valid: shorten the validation phases too?

        Raises:
            ValueError: `pct` must be the fraction of an epoch to keep
        """
        ...
def limit_from_env() -> list[Any]:
    """Return the callbacks that the environment variable `LEARNKIT_LIMIT_BATCHES` asks for: a `LimitBatches`, or none

    Raises:
        ValueError: `LEARNKIT_LIMIT_BATCHES` must be a number of batches, 1 or more, or a fraction of them such as 0.1
    """
    ...
