# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Losses, learning rates and metrics: a row an epoch, by name"""
import torch
from ._fastcore import L
from .callback import Callback
from .smooth_loss import AvgSmoothLoss
from typing import Any

__all__ = ['silent', 'format_time', 'format_value', 'History', 'Silent', 'Meter', 'MeterCallback', 'Recorder',
           'NonFiniteLoss', 'weights_finite']
def format_time(t: float) -> str:
    """Seconds as mm:ss, or h:mm:ss"""
    ...
def format_value(v: Any) -> str:
    """A cell of the table: floats with six decimals, nothing for None"""
    ...
class History(list[Any]):
    """Rows as dictionaries; `history['valid_loss']` is a column"""
    def __getitem__(self, k: Any) -> Any: ...
    @property
    def names(self) -> list[Any]:
        """The names of the columns; a run that was resumed may have others than before"""
        ...
    def latest(self, k: str) -> Any:
        """The newest value of a column, None if it has none yet

        Args:
            k: the name of a column
        """
        ...
    def state_dict(self) -> list[Any]:
        """The rows as plain dictionaries"""
        ...
    def load_state_dict(self, state: list[Any]) -> None:
        """Have these rows, and no others"""
        ...
    def cells(self) -> list[Any]:
        """The table as lists of strings, the names first"""
        ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> Any: ...
class Silent:
    """A logger that logs nothing"""
    __name__: str
    __hash__: Any
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    def __eq__(self, o: Any) -> bool: ...
silent: Silent
class Meter:
    """The loss and the metrics of one phase"""
    metrics: list[Any]
    last: Any
    def __init__(self, metrics: Any) -> None: ...
    def reset(self, skip: int = 0) -> None: ...
    def accumulate(self, learn: Any) -> bool:
        """Take in the Learner's current batch, unless it is the same as before; says whether it did"""
        ...
    @property
    def values(self) -> list[Any]:
        """The value of each metric"""
        ...
    def state_dict(self) -> list[Any]:
        """What each metric has gathered"""
        ...
    def load_state_dict(self, state: list[Any]) -> None:
        """Go on with what `state_dict` gave"""
        ...
class MeterCallback(Callback):
    """Measures a validation phase: its `values` are the loss, then the metrics"""
    order: int
    run_train: bool
    nested: bool
    name: str
    meter: Meter
    def __init__(self, metrics: Any = None, copy: bool = False) -> None:
        """Measures a validation phase: its `values` are the loss, then the metrics

        Args:
            copy: `copy`: work on copies of the metrics, which may be in use outside
        """
        ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    @property
    def values(self) -> L:
        """The loss, then the metrics"""
        ...
class Recorder(Callback):
    """Records each batch's loss and learning rate, and each epoch's losses, metrics and time"""
    order: int
    modes: tuple[Any, ...]
    remove_on_fetch: bool
    smooth_loss: AvgSmoothLoss
    history: History
    metric_names: L
    lrs: list[Any]
    iters: list[Any]
    row: dict[Any, Any]
    train: Meter
    valid: Meter
    cancelled: set[Any]
    looked: Any
    sound: bool
    start: Any
    hps: dict[Any, Any]
    group_hps: dict[Any, Any]
    add_time: bool
    train_metrics: bool
    valid_metrics: bool
    beta: float
    on_nan: str
    train_names: Any
    valid_names: Any
    def __init__(
        self,
        add_time: bool = True,
        train_metrics: bool = False,
        valid_metrics: bool = True,
        beta: float = 0.98,
        on_nan: str = 'raise',
    ) -> None:
        """Records each batch's loss and learning rate, and each epoch's losses, metrics and time

        Args:
            add_time: a column for the time an epoch took
            train_metrics: compute the metrics in training too
            valid_metrics: compute the metrics in validation
            beta: how slowly the smoothed training loss moves: 0 is not at all, 1 for ever
            on_nan: when weights are NaN or infinite, and no callback is there for that: 'raise' `NonFiniteLoss`, or 'warn' and go on
        """
        ...
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_cancel_train(self) -> None: ...
    def after_cancel_validate(self) -> None: ...
    def after_train(self) -> None: ...
    def after_validate(self) -> None: ...
    def after_epoch(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """The record so far, in the middle of an epoch too"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on with the record that `state_dict` gave"""
        ...
    @property
    def lr(self) -> float:
        """The last group's learning rate; a copy where it is a tensor that the optimizer changes in place"""
        ...
    @property
    def log(self) -> list[Any]:
        """The current row, by position"""
        ...
    @property
    def values(self) -> L:
        """All rows by position, without the epoch and the time; nan for None, so that fastai's trackers can compare"""
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
        """
        ...
    def plot_sched(self, keys: str|list[Any]|None = None, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Plot the scheduled hyper-parameters of the last fit, batch by batch; raises ValueError if there are none

        Args:
            keys: which hyper-parameters; None: all that were scheduled
            figsize: width and height of the figure in inches; None: 6 by 4 for each plot

        Returns:
            the matplotlib axes
        """
        ...
    def _look_for_nan(self) -> None:
        """Is there a loss that is not finite among those that were read since the last look?"""
        ...
    def _where_nan(self, i: Any, what: Any) -> str: ...
    def plot_loss(
        self,
        skip_start: int = 5,
        with_valid: bool = True,
        log: bool = False,
        show_epochs: bool = False,
        ax: Any = None,
    ) -> Any:
        """Draw the loss curve; returns the matplotlib axes

        Args:
            skip_start: batches to leave out at the beginning
            with_valid: draw the validation losses too
            log: a logarithmic loss axis
            show_epochs: count in epochs, not batches
            ax: matplotlib axes to draw on; new ones if None
        """
        ...
    def plot_metrics(self, ncols: int = 3, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Draw the epochs' losses and metrics; returns the matplotlib axes

        Args:
            ncols: pictures in a row
            figsize: width and height of the whole, in inches; None: 4 by 3 for each picture
        """
        ...
def elements(t: torch.Tensor) -> torch.Tensor:
    """The numbers in `t`: of a sparse tensor those that it has, of a distributed one the own part

    Args:
        t: of any layout
    """
    ...
class NonFiniteLoss(FloatingPointError):
    """The training loss is NaN or infinite, and so are weights"""
def weights_finite(opt: Any) -> bool:
    """Is every trained weight a finite number? A frozen one may be a mask of infinities. Waits for the device.

    Args:
        opt: the optimizer that trains them
    """
    ...
def _lost(model: Any) -> Any:
    """What is nan in a model whose weights are not: the averages of a batch norm, say, when mixed precision has left out the step alone"""
    ...
def _families(names: Any) -> Any:
    """Column names by what they measure: `train_mae` and `valid_mae` belong together"""
    ...
