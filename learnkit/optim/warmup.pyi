# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Linear warm-up and then a line, a cosine, a power, the inverse root, or stable and decay"""
import torch
from collections.abc import Callable
from ..duration import Time
from .schedule import SchedCos
from typing import Any

__all__ = ['Warmup', 'warmup_const', 'warmup_lin', 'warmup_poly', 'warmup_cos', 'inv_sqrt', 'wsd']
class Warmup:
    """A schedule that rises from 0 to the beginning of `then` in a line, and goes on with `then`"""
    top: Any
    then: Callable[..., Any]
    warm: Any
    amount: Time|None
    next: Any
    def __init__(self, warm: float|str, top: float|list[Any], then: Callable[..., Any]) -> None:
        """A schedule that rises from 0 to the beginning of `then` in a line, and goes on with `then`

        Args:
            warm: its length: a fraction of the training, 0 to 1, or an amount such as '500ba'
            top: the value at its end; a list has one for each parameter group
            then: function of the fraction of the warm-up: the schedule that follows

        Raises:
            ValueError: `warm` must be the warm-up
            ValueError: `warm` must be a fraction
        """
        ...
    def _set(self, warm: Any) -> None: ...
    def within(self, duration: Time, n: int|None = None) -> None:
        """Find the fraction that the warm-up is of a fit; raises ValueError if it cannot be told, or is all of it

        Args:
            duration: how long the fit is
            n: batches of an epoch, None: unknown

        Raises:
            ValueError: a warm-up of … must be shorter than the fit, which is … long…
        """
        ...
    def __call__(self, pos: float) -> float|torch.Tensor:
        """Return the value at `pos`

        Args:
            pos: the position in training, 0 to 1

        Raises:
            ValueError: a warm-up of … is known in a fit only: to plot it, give a fraction such as 0.05
        """
        ...
def warmup_const(lr: float|list[Any], warm: float|str = 0.05) -> dict[Any, Any]:
    """Return a linear warm-up, and then the same rate

    Args:
        lr: the learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction, or an amount such as '500ba'

    Returns:
        name of a hyper-parameter -> schedule
    """
    ...
def warmup_lin(lr: float|list[Any], warm: float|str = 0.05, lr_end: float|list[Any] = 0.0) -> dict[Any, Any]:
    """Return a linear warm-up, and then a line down

    Args:
        lr: the highest learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction, or an amount such as '500ba'
        lr_end: the last learning rate

    Returns:
        name of a hyper-parameter -> schedule
    """
    ...
def warmup_poly(
    lr: float|list[Any],
    warm: float|str = 0.05,
    lr_end: float|list[Any] = 1e-07,
    power: float = 1.0,
) -> dict[Any, Any]:
    """Return a linear warm-up, and then a polynomial decay

    Args:
        lr: the highest learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction, or an amount such as '500ba'
        lr_end: the last learning rate
        power: of the way that is left: above 1 it falls fast at first

    Returns:
        name of a hyper-parameter -> schedule
    """
    ...
def _backward(sched: Any, pos: Any) -> Any: ...
def warmup_cos(
    lr: float|list[Any],
    warm: float|str = 0.05,
    lr_min: float|list[Any] = 0.0,
    cycles: int = 1,
) -> dict[Any, Any]:
    """Return a linear warm-up, and then a cosine, or several with warm restarts

    Args:
        lr: the highest learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction, or an amount such as '500ba'
        lr_min: the lowest learning rate
        cycles: how many times it falls, each time from the highest rate

    Returns:
        name of a hyper-parameter -> schedule

    Raises:
        ValueError: `cycles` must be a whole number, 1 or more
    """
    ...
def inv_sqrt(lr: float|list[Any], warm: float|str = 0.05) -> dict[Any, Any]:
    """Return a linear warm-up, and then a rate that falls with the root of the batches (Vaswani et al. 2017)

    Args:
        lr: the highest learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction above 0, or an amount such as '500ba'

    Returns:
        name of a hyper-parameter -> schedule

    Raises:
        ValueError: `warm` must be more than 0: the rate falls by the length of the warm-up
    """
    ...
def wsd(
    lr: float|list[Any],
    warm: float|str = 0.05,
    decay: float = 0.2,
    lr_min: float|list[Any] = 0.0,
    shape: Callable[..., Any] = SchedCos,
) -> dict[Any, Any]:
    """Return warm-up, stable and decay: a linear rise, the same rate for long, and a fall at the end (MiniCPM 2024)

    Args:
        lr: the highest learning rate; a list has one for each parameter group
        warm: length of the warm-up: a fraction, or an amount such as '500ba'
        decay: length of the decay: a fraction of the training
        lr_min: the last learning rate
        shape: of the decay: `SchedCos`, `SchedLin`, …

    Returns:
        name of a hyper-parameter -> schedule

    Raises:
        ValueError: `decay` must be the length of the decay
    """
    ...
