# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Plot the loss curve, and the metrics of the epochs"""
from collections.abc import Iterable
from ._fastcore import L
from .history import History
from .scalars import Series
from .smooth_loss import AvgSmoothLoss
from typing import Any

__all__ = ['RecorderPlots']
class RecorderPlots:
    """The plotting methods of the `Recorder`, which has the attributes that they read"""
    history: History
    metric_names: L
    smooth_loss: AvgSmoothLoss
    lrs: Series
    iters: list[Any]
    def plot_loss(
        self,
        skip_start: int = 5,
        with_valid: bool = True,
        log: bool = False,
        show_epochs: bool = False,
        ax: Any = None,
    ) -> Any:
        """Plot the loss curve: training and validation loss; raises ValueError before the first batch

        Args:
            skip_start: batches to leave out at the beginning
            with_valid: draw the validation losses too?
            log: a logarithmic loss axis?
            show_epochs: count in epochs, not batches?
            ax: matplotlib axes to draw on; None: new ones

        Returns:
            the matplotlib axes

        Raises:
            ValueError: nothing is recorded yet: call `learn.fit(n)` first
        """
        ...
    def plot_metrics(self, ncols: int = 3, figsize: tuple[Any, ...]|None = None) -> list[Any]:
        """Plot the losses and metrics of the epochs; raises ValueError before the end of the first epoch

        Args:
            ncols: plots in a row
            figsize: width and height of the figure, in inches; None: 4 by 3 for each plot

        Returns:
            of matplotlib axes

        Raises:
            ValueError: no epoch is recorded yet: call `learn.fit(n)` first
        """
        ...
def group_columns(names: Iterable[str]) -> dict[Any, Any]:
    """Group column names by what they measure: `train_mae` and `valid_mae` belong together

    Args:
        names: names of columns

    Returns:
        lists of names, by what they measure
    """
    ...
