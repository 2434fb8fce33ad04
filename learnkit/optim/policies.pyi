# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""fit_one_cycle, fit_flat_cos, fit_sgdr and fine_tune: training with a learning-rate schedule in one call"""
from typing import Any

__all__ = ['one_cycle', 'flat_cos', 'sgdr']
def one_cycle(
    lr_max: float|list[Any],
    div: float = 25.0,
    div_final: float = 100000.0,
    pct_start: float = 0.25,
    moms: tuple[Any, ...]|None = None,
) -> dict[Any, Any]:
    """Returns the schedules of the one-cycle policy (Smith 2018); raises ValueError for a divisor that is not above 0

    Args:
        lr_max: the highest learning rate; a list has one for each parameter group
        div: the initial learning rate is `lr_max/div`
        div_final: the final learning rate is `lr_max/div_final`
        pct_start: the fraction of the training in which the rate rises, 0 to 1
        moms: momentum at the start, at the highest rate and at the end; None: no schedule for it

    Returns:
        name of a hyper-parameter -> schedule

    Raises:
        ValueError: `…` must be a number above 0
        ValueError: moms are three numbers from 0 to less than 1: at the start, at the highest learning rate and at the …
    """
    ...
def _check_positive(**kwargs: Any) -> None: ...
def _group_lrs(learn: Any, lr: Any) -> Any:
    """Returns `lr`, or the Learner's learning rate, as the optimizer spreads it over its parameter groups

    Raises:
        ValueError: learning rates must be 0 or more
    """
    ...
def _fit_scheduled(learn: Any, n_epoch: Any, scheds: Any, cbs: Any = None, **kwargs: Any) -> None: ...
def flat_cos(lr: float|list[Any], div_final: float = 100000.0, pct_start: float = 0.75) -> dict[Any, Any]:
    """Returns the schedule with a constant learning rate that falls along a cosine at the end

    Args:
        lr: the initial learning rate; a list has one for each parameter group
        div_final: the final learning rate is `lr/div_final`
        pct_start: the fraction of the training in which the rate is constant, 0 to 1

    Returns:
        name of a hyper-parameter -> schedule

    Raises:
        ValueError: `…` must be a number above 0
    """
    ...
def sgdr(lens: list[Any], lr_max: float|list[Any]) -> dict[Any, Any]:
    """Returns the schedule of SGD with warm restarts (Loshchilov and Hutter 2016)

    Args:
        lens: the length of each cycle; only the ratios matter
        lr_max: the learning rate at the start of each cycle; a list has one for each parameter group

    Returns:
        name of a hyper-parameter -> schedule
    """
    ...
