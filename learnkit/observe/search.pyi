# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A callback for each of two search libraries: Optuna prunes a trial, Ray Tune gets the rows of the history"""
from collections.abc import Callable
from ..control.tracker import TrackerCallback
from ..metric import Metric
from .loggers import MetricsLogger
from typing import Any

__all__ = ['OptunaPruning', 'RayTuneReport']
class OptunaPruning(TrackerCallback):
    """Reports a value to a trial of Optuna after each validation; raises `optuna.TrialPruned` if that says so"""
    known: Any
    trial: Any
    told: list[Any]
    pruned: Any
    def __init__(self, trial: Any, monitor: str|Callable[..., Any]|Metric|None = 'valid_loss') -> None:
        """Reports a value to a trial of Optuna after each validation; raises `optuna.TrialPruned` if that says so

        Args:
            trial: what Optuna gives the objective
            monitor: a column, metric or function of the Learner; None: valid_loss
        """
        ...
    def before_fit(self) -> None: ...
    def compare(self, value: Any) -> None: ...
    def after_load_checkpoint(self) -> None: ...
    def _report(self, step: Any, value: Any) -> None: ...
class RayTuneReport(MetricsLogger):
    """Reports each row of the history to Ray Tune, whose scheduler may end the trial there"""
    tune: Any
    told: list[Any]
    def __init__(self) -> None: ...
    def write(self, metrics: Any, step: Any) -> None:
        """Gauges are no results of a trial

        Args:
            metrics: numbers by name
            step: training batches so far, in all fits
        """
        ...
    def write_row(self, row: Any, step: Any) -> None: ...
    def after_load_checkpoint(self) -> None: ...
