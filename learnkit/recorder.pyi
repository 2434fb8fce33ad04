# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Record losses, learning rates and metrics, without waiting for the device"""
import torch
from ._fastcore import L
from .callback import Callback
from .meter import Meter
from .recorder_plots import RecorderPlots
from typing import Any

__all__ = ['Recorder']
class Recorder(RecorderPlots, Callback):
    """Records the loss and learning rate of each batch, and the losses, metrics and time of each epoch"""
    name: str
    remove_on_fetch: bool
    train: Meter
    valid: Meter
    cancelled: set[Any]
    start: Any
    add_time: bool
    train_metrics: bool
    valid_metrics: bool
    beta: float
    row: dict[Any, Any]
    hps: dict[Any, Any]
    group_hps: dict[Any, Any]
    train_names: list[Any]
    valid_names: Any
    lr_curve: Any
    def __init__(
        self,
        add_time: bool = True,
        train_metrics: bool = False,
        valid_metrics: bool = True,
        beta: float = 0.98,
    ) -> None:
        """Records the loss and learning rate of each batch, and the losses, metrics and time of each epoch

        Args:
            add_time: a column for the time that an epoch took
            train_metrics: compute the metrics on the training batches too
            valid_metrics: compute the metrics in validation
            beta: smoothing of the training loss: the share of the old average that each batch keeps
        """
        ...
    def _clear(self) -> None: ...
    def before_fit(self) -> None: ...
    def _column_names(self) -> Any: ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    def _announce_losses(self) -> None: ...
    def after_cancel_train(self) -> None: ...
    def after_cancel_validate(self) -> None: ...
    def after_train(self) -> None: ...
    def after_validate(self) -> None: ...
    def _of_all(self, values: Any) -> Any:
        """The smoothed loss as the mean over processes that train together; metrics are so already"""
        ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def after_epoch(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return all that is recorded, also in the middle of an epoch"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`; raises ValueError if it is of other metrics

        Args:
            state: what `state_dict` returned
        """
        ...
    @property
    def lr(self) -> float|torch.Tensor:
        """The learning rate of the last parameter group; a copy if it is a tensor, which the optimizer changes in place"""
        ...
    @property
    def log(self) -> list[Any]:
        """The current row, by position, as far as it is known; assigning to a cell writes to the row"""
        ...
    @property
    def values(self) -> L:
        """The rows of the epochs by position, without epoch and time; nan for None, as fastai's trackers compare them"""
        ...
    @property
    def losses(self) -> L:
        """The smoothed training loss after each batch, as tensors"""
        ...
    def plot_lr_find(self, skip_end: int = 5, **kwargs: Any) -> Any:
        """Plot the curve of the last `lr_find`; raises ValueError if there was none

        Args:
            skip_end: number of points to leave out at the end
            kwargs: passed on to `LRCurve.plot`

        Returns:
            the matplotlib axes

        Raises:
            ValueError: there is no curve to plot: call `learn.lr_find()` first
        """
        ...
    def plot_sched(self, keys: str|list[Any]|None = None, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Plot the scheduled hyper-parameters of the last fit, batch by batch; raises ValueError if there are none

        Args:
            keys: which hyper-parameters; None: all that were scheduled
            figsize: width and height of the figure in inches; None: 6 by 4 for each plot

        Returns:
            the matplotlib axes

        Raises:
            ValueError: no schedule is recorded: fit with one first, for instance by `learn.fit_one_cycle(n)`
            ValueError: '…' was not scheduled: …
        """
        ...
def _by_position(row: Any) -> Any: ...
def _state(o: Any) -> Any:
    """The state of a `Series`, or of all in a dict; what a foreign callback has put there as it is"""
    ...
