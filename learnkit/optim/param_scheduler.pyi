# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""ParamScheduler: sets the learning rate and other hyper-parameters before each batch, and records them for plots"""
from collections.abc import Mapping
from ..callback import Callback
from typing import Any

__all__ = ['Scheduler', 'ParamScheduler']
class Scheduler(Callback):
    """Base class of schedulers: records the hyper-parameters `names` of each batch, and restores them after the run"""
    names: tuple[Any, ...]
    initial: list[Any]|None
    hypers: list[Any]
    hps: dict[Any, Any]
    group_hps: dict[Any, Any]
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def cleanup(self) -> None: ...
class ParamScheduler(Scheduler):
    """Sets hyper-parameters by their schedules before each batch (fastai's name)"""
    together: bool
    scheds: dict[Any, Any]
    accumulates: Any
    def __init__(self, scheds: Mapping[Any, Any]) -> None:
        """Sets hyper-parameters by their schedules before each batch (fastai's name)

        Args:
            scheds: name -> schedule: a function of the position 0…1 that returns a number, a list or a slice

        Raises:
            TypeError: schedules are given by name, as in `ParamScheduler({'lr': SchedCos(1e-2, 0)})`, not as …
            TypeError: the schedule of '…' must be a function of the position, such as `SchedNo(…, …)`
        """
        ...
    def before_train(self) -> None: ...
    def before_fit(self) -> None: ...
    def _measure(self, n: Any) -> None:
        """Tell schedules with a warm-up of so many batches how long the fit is"""
        ...
    def before_batch(self) -> None: ...
    def plot(self, n: int = 200, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Plot the schedules without training

        Args:
            n: number of points, at least 2
            figsize: width and height of the figure in inches; None: 6 by 4 for each plot

        Returns:
            the matplotlib axes
        """
        ...
