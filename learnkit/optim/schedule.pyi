# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Hyper-parameters that change as the training goes on: one cycle, restarts, warm-up, or anything you can write as a function"""
from collections.abc import Callable, Iterable, Mapping
from ..callback import Callback
from typing import Any

__all__ = ['SchedLin', 'SchedCos', 'SchedNo', 'sched_lin', 'sched_cos', 'sched_no', 'sched_exp', 'by_group',
           'annealer', 'SchedExp', 'SchedPoly', 'combine_scheds', 'combined_cos', 'plot_hypers',
           'plot_scheds', 'Scheduler', 'ParamScheduler', 'one_cycle', 'flat_cos', 'sgdr']
def sched_lin(start: Any, end: Any, pos: Any) -> Any:
    """In a straight line"""
    ...
def sched_cos(start: Any, end: Any, pos: Any) -> Any:
    """Along half a wave of cosine"""
    ...
def sched_no(start: Any, end: Any, pos: Any) -> Any:
    """Not at all: stay at `start`"""
    ...
def sched_exp(start: Any, end: Any, pos: Any) -> Any:
    """In equal ratios"""
    ...
def by_group(v: float|Iterable[Any]) -> Any:
    """A list of one value for each parameter group as something to do arithmetic with; a single number as it is"""
    ...
def annealer(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, to be given its ends first and its position later

    Args:
        f: a function of (start, end, pos)

    Returns:
        a function of (start, end), which gives a function of pos
    """
    ...
SchedLin: Any
SchedCos: Any
SchedNo: Any
def SchedExp(start: float|list[Any], end: float|list[Any]) -> Callable[..., Any]:
    """From `start` to `end` in equal ratios

    Args:
        start: the value at position 0
        end: and at position 1, on the same side of zero
    """
    ...
def SchedPoly(start: float|list[Any], end: float|list[Any], power: float) -> Callable[..., Any]:
    """From `start` to `end` as a power of the position

    Args:
        start: the value at position 0
        end: and at position 1
        power: above 1 it begins slowly, below 1 fast
    """
    ...
def _sched_poly(start: Any, end: Any, power: Any, pos: Any) -> Any: ...
def combine_scheds(pcts: Iterable[Any], scheds: Iterable[Any]) -> Callable[..., Any]:
    """The schedules, one after the other

    Args:
        pcts: the share of each schedule, from 0 to 1; together they are 1
        scheds: the schedules
    """
    ...
def _combined(ends: Any, scheds: Any, pos: Any) -> Any: ...
def combined_cos(
    pct: float,
    start: float|list[Any],
    middle: float|list[Any],
    end: float|list[Any],
) -> Callable[..., Any]:
    """Along cosines from `start` to `middle`, and on to `end`

    Args:
        pct: the share of the way to `middle`
        start: the value at position 0
        middle: at position `pct`
        end: and at position 1
    """
    ...
def plot_hypers(
    curves: Mapping[Any, Any],
    xs: Iterable[Any]|None = None,
    xlabel: str = 'batch',
    figsize: tuple[Any, ...]|None = None,
) -> list[Any]:
    """Draw hyper-parameters, each in a picture of its own; returns the matplotlib axes

    Args:
        curves: name -> values; a value is a number, or a list of one for each group
        xs: the positions of the values; None: their numbers
        xlabel: what the positions are
        figsize: width and height of the whole, in inches; None: 6 by 4 for each picture
    """
    ...
def plot_scheds(
    scheds: Mapping[Any, Any]|Callable[..., Any],
    n: int = 200,
    figsize: tuple[Any, ...]|None = None,
) -> list[Any]:
    """Draw what schedules will do, without any training; returns the matplotlib axes

    Args:
        scheds: name -> schedule, or a single schedule
        n: how many points to draw
        figsize: width and height of the whole, in inches
    """
    ...
class Scheduler(Callback):
    """Records the hyper-parameters `names` of each batch, and puts them back after the run"""
    order: int
    run_valid: bool
    modes: tuple[Any, ...]
    names: tuple[Any, ...]
    before: list[Any]|None
    hypers: list[Any]
    hps: dict[Any, Any]
    group_hps: dict[Any, Any]
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def cleanup(self) -> None: ...
class ParamScheduler(Scheduler):
    """Before each batch, sets hyper-parameters to what their schedules say"""
    scheds: dict[Any, Any]
    def __init__(self, scheds: Mapping[Any, Any]) -> None:
        """Before each batch, sets hyper-parameters to what their schedules say

        Args:
            scheds: name of a hyper-parameter -> a function from 0…1 to its value: a number, or a list or slice for all groups
        """
        ...
    def before_batch(self) -> None: ...
    def plot(self, n: int = 200, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Draw what it will do, without any training; returns the matplotlib axes

        Args:
            n: how many points to draw
            figsize: width and height of the whole, in inches
        """
        ...
def one_cycle(
    lr_max: float|list[Any],
    div: float = 25.0,
    div_final: float = 100000.0,
    pct_start: float = 0.25,
    moms: tuple[Any, ...]|None = None,
) -> dict[Any, Any]:
    """The schedules of the one-cycle policy (Smith 2018)

    Args:
        lr_max: the highest learning rate
        div: it begins at `lr_max/div`
        div_final: and ends at `lr_max/div_final`
        pct_start: the share of the training in which it rises
        moms: momentum at the beginning, at the highest rate and at the end; None: leave it alone
    """
    ...
def _check_above_zero(**kwargs: Any) -> None: ...
def _group_lrs(learn: Any, lr: Any) -> Any:
    """`lr`, or the Learner's, as the optimizer spreads it over its groups"""
    ...
def flat_cos(lr: float|list[Any], div_final: float = 100000.0, pct_start: float = 0.75) -> dict[Any, Any]:
    """The schedule that is flat and then falls along a cosine

    Args:
        lr: the learning rate to begin with
        div_final: it ends at `lr/div_final`
        pct_start: the share of the training in which it stays
    """
    ...
def sgdr(lens: list[Any], lr_max: float|list[Any]) -> dict[Any, Any]:
    """The schedule with warm restarts (Loshchilov and Hutter 2016)

    Args:
        lens: how long each cycle is; only the ratios matter
        lr_max: where each cycle begins
    """
    ...
