# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Mean, standard deviation, share near zero and histogram of each layer's output, batch by batch"""
import torch
from .._fastcore import L
from .hook_callback import HookCallback
from torch import nn
from typing import Any

__all__ = ['activation_stats', 'ActivationStats']
def activation_stats(
    o: torch.Tensor,
    bins: int = 40,
    lo: float = 0.0,
    hi: float = 10.0,
    near: float = 0.05,
) -> torch.Tensor:
    """Returns `[mean, variance (of the population), share near zero, *counts]` of `o`, computed on its device

    Args:
        o: the activations
        bins: number of bins of the histogram; 0: no histogram
        lo: lower edge of the first bin
        hi: upper edge of the last bin; values outside are not counted
        near: a value counts as near zero up to here
    """
    ...
def pool_stats(stats: torch.Tensor, ns: list[int], group: list[int], n_groups: int) -> torch.Tensor:
    """Returns `[mean, standard deviation, share near zero, *counts]` of each group

    Args:
        stats: `activation_stats` of the parts, one in a row
        ns: number of values of each part
        group: number of the group that each part belongs to
        n_groups: number of groups
    """
    ...
class ActivationStats(HookCallback):
    """Records mean, standard deviation, share near zero and histogram of each layer's output (from fastai)"""
    with_hist: bool
    bins: int
    hist_range: tuple[Any, ...]
    kept: list[Any]
    waiting: list[Any]
    calls: Any
    iters: list[Any]
    names: list[Any]
    number: dict[Any, Any]
    def __init__(
        self,
        with_hist: bool = True,
        modules: Any = None,
        every: int|None = None,
        bins: int = 40,
        hist_range: tuple[Any, ...] = (0, 10),
        **kwargs: Any,
    ) -> None:
        """Records mean, standard deviation, share near zero and histogram of each layer's output (from fastai)

        Args:
            with_hist: record histograms too
            modules: the layers to record; None: all layers that have parameters
            every: record every n-th training batch only; None: all of them
            bins: number of bins of the histogram
            hist_range: `(low, high)` edges of the histogram
            kwargs: further arguments of `HookCallback`

        Raises:
            ValueError: `hist_range` must be two numbers, the smaller one first
            ValueError: `bins` must be a number of bins (`with_hist=False` records no histogram), 1 or more
        """
        ...
    def _reset(self) -> None:
        """Forget the record: `kept` in main memory, `waiting` on the device, `calls` of this batch, `iters` of all"""
        ...
    def before_fit(self) -> None: ...
    def before_pred(self) -> None: ...
    def after_pred(self) -> None: ...
    def after_backward(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_train(self) -> None: ...
    def cleanup(self) -> None: ...
    def hook(self, m: nn.Module, i: Any, o: Any) -> None:
        """Record the statistics of a layer's output

        Args:
            m: the layer
            i: its inputs
            o: its output
        """
        ...
    def _end_batch(self) -> None:
        """Keep the statistics of the batch, as one tensor on the device"""
        ...
    def _read(self) -> None:
        """Copy what waits on the device to main memory, all at once"""
        ...
    def color_dim(self, idx: int, figsize: tuple[Any, ...] = (10, 5), ax: Any = None) -> Any:
        """Plot a layer's histograms over time; returns the matplotlib axes

        Args:
            idx: number of the layer, in the order of `modules`
            figsize: width and height in inches
            ax: matplotlib axes to draw on; None: new ones
        """
        ...
    def color_dims(self, cols: int = 3, size: tuple[Any, ...] = (4, 2.5)) -> Any:
        """Plot the histograms of all layers in a grid; returns the matplotlib figure

        Args:
            cols: number of columns of the grid
            size: width and height of each plot in inches
        """
        ...
    def plot_layer_stats(self, idx: int) -> Any:
        """Plot one layer's mean, standard deviation and share near zero over time; returns the matplotlib figure

        Args:
            idx: number of the layer, in the order of `modules`
        """
        ...
    def plot_stats(self, idxs: Any = None, figsize: tuple[Any, ...] = (12, 3)) -> Any:
        """Plot means, standard deviations and shares near zero of several layers over time; returns the matplotlib figure

        Args:
            idxs: numbers of the layers; None: all of them
            figsize: width and height in inches
        """
        ...
    def table(self) -> torch.Tensor:
        """Returns everything recorded: batch x layer x (mean, standard deviation, share near zero, *counts)

        Raises:
            ValueError: nothing is recorded yet: call `learn.fit(n)` first
        """
        ...
    def layer_stats(self, idx: int) -> L:
        """Returns a layer's means, standard deviations and shares near zero, as lists with a value for each recorded batch

        Args:
            idx: number of the layer, in the order of `modules`
        """
        ...
    def hist(self, idx: int) -> torch.Tensor:
        """Returns the logarithm (`log1p`) of a layer's counts, bin x batch; raises ValueError if there are none

        Args:
            idx: number of the layer, in the order of `modules`

        Raises:
            ValueError: no histograms were recorded: pass `with_hist=True` to ActivationStats
        """
        ...
    @property
    def stats(self) -> L:
        """For each batch, for each layer: a dictionary of `mean`, `std`, `near_zero` (and `hist`)"""
        ...
