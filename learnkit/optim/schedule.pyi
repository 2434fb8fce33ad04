# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Learning-rate schedules: linear, cosine, exponential and polynomial, and how to combine them (warm-up, one cycle)"""
import torch
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ['SchedLin', 'SchedCos', 'SchedNo', 'sched_lin', 'sched_cos', 'sched_no', 'sched_exp', 'annealer', 'SchedExp',
           'SchedPoly', 'combine_scheds', 'combined_cos', 'plot_hypers', 'plot_scheds']
def sched_lin(start: float|torch.Tensor, end: float|torch.Tensor, pos: float) -> float|torch.Tensor:
    """Linear interpolation between `start` and `end`

    Args:
        start: the value at position 0; a tensor has one for each parameter group
        end: the value at position 1
        pos: the position in training, 0 to 1

    Returns:
        the value at `pos`
    """
    ...
def sched_cos(start: float|torch.Tensor, end: float|torch.Tensor, pos: float) -> float|torch.Tensor:
    """Cosine annealing: half a period of a cosine from `start` to `end`

    Args:
        start: the value at position 0; a tensor has one for each parameter group
        end: the value at position 1
        pos: the position in training, 0 to 1

    Returns:
        the value at `pos`
    """
    ...
def sched_no(start: float|torch.Tensor, end: float|torch.Tensor, pos: float) -> float|torch.Tensor:
    """No change: the value is always `start`

    Args:
        start: the value; a tensor has one for each parameter group
        end: not used
        pos: the position in training, not used

    Returns:
        `start`
    """
    ...
def sched_exp(start: float|torch.Tensor, end: float|torch.Tensor, pos: float) -> float|torch.Tensor:
    """Exponential interpolation: equal steps change the value by equal factors

    Args:
        start: the value at position 0; a tensor has one for each parameter group
        end: the value at position 1, of the same sign
        pos: the position in training, 0 to 1

    Returns:
        the value at `pos`
    """
    ...
def group_values(v: float|Iterable[Any]) -> Any:
    """Returns values per parameter group in a form that arithmetic works on; raises TypeError for a slice

    Args:
        v: a number, or a list of one for each parameter group

    Returns:
        the number itself, or the list as a tensor

    Raises:
        TypeError: a schedule goes from number to number, not …: give a list with a number for each parameter group, …
    """
    ...
def annealer(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: turn a function of `(start, end, pos)` into one that returns a schedule from `start` to `end`

    Args:
        f: a function of (start, end, pos)

    Returns:
        a function of (start, end) that returns a schedule, which is a function of `pos`
    """
    ...
SchedLin: Any
SchedCos: Any
SchedNo: Any
def SchedExp(start: float|list[Any], end: float|list[Any]) -> Callable[..., Any]:
    """Exponential schedule from `start` to `end`; raises ValueError if they are not on the same side of zero

    Args:
        start: the value at position 0; a list has one for each parameter group
        end: the value at position 1, on the same side of zero

    Returns:
        the schedule: a function of the position, 0 to 1

    Raises:
        ValueError: an exponential schedule cannot go from … to …: both must be on the same side of zero; `SchedLin` …
    """
    ...
def SchedPoly(start: float|list[Any], end: float|list[Any], power: float) -> Callable[..., Any]:
    """Polynomial schedule: from `start` to `end` by a power of the position

    Args:
        start: the value at position 0; a list has one for each parameter group
        end: the value at position 1
        power: above 1 it starts slowly, below 1 fast; 1 is linear

    Returns:
        the schedule: a function of the position, 0 to 1
    """
    ...
def _sched_poly(start: Any, end: Any, power: Any, pos: Any) -> Any: ...
def combine_scheds(pcts: Iterable[Any], scheds: Iterable[Any]) -> Callable[..., Any]:
    """Run schedules one after the other; raises ValueError if the fractions `pcts` do not add up to 1

    Args:
        pcts: the fraction of the training for each schedule; together they are 1
        scheds: the schedules

    Returns:
        one schedule: a function of the position, 0 to 1

    Raises:
        ValueError: … fractions for … schedules: give one fraction for each schedule
        ValueError: the fractions of schedules must be from 0 to 1 and add up to 1, but … add up to ……
    """
    ...
def _combined(ends: Any, scheds: Any, pos: Any) -> Any: ...
def combined_cos(
    pct: float,
    start: float|list[Any],
    middle: float|list[Any],
    end: float|list[Any],
) -> Callable[..., Any]:
    """Cosine annealing from `start` to `middle` and on to `end`; raises ValueError if `pct` is not from 0 to 1

    Args:
        pct: the fraction of the training from `start` to `middle`, 0 to 1
        start: the value at position 0; a list has one for each parameter group
        middle: the value at position `pct`
        end: the value at position 1

    Returns:
        the schedule: a function of the position, 0 to 1

    Raises:
        ValueError: `pct_start` must be the fraction of the training up to the middle value
    """
    ...
def plot_hypers(
    curves: Mapping[Any, Any],
    xs: Iterable[Any]|None = None,
    xlabel: str = 'batch',
    figsize: tuple[Any, ...]|None = None,
) -> list[Any]:
    """Plot the values of hyper-parameters, each in its own axes

    Args:
        curves: name -> values; a value is a number, or a list of one for each parameter group
        xs: the positions of the values; None: 0, 1, 2 …
        xlabel: the label of the x axis
        figsize: width and height of the figure in inches; None: 6 by 4 for each plot

    Returns:
        the matplotlib axes
    """
    ...
def plot_scheds(
    scheds: Mapping[Any, Any]|Callable[..., Any],
    n: int = 200,
    figsize: tuple[Any, ...]|None = None,
) -> list[Any]:
    """Plot schedules without training; raises ValueError for less than 2 points

    Args:
        scheds: name -> schedule, or a single schedule
        n: number of points, at least 2
        figsize: width and height of the figure in inches; None: 6 by 4 for each plot

    Returns:
        the matplotlib axes

    Raises:
        ValueError: `n` must be a whole number, 2 or more
    """
    ...
