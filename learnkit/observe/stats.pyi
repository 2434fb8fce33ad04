# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Mean, spread, share near zero and histogram of what every layer gives, batch by batch"""
import torch
from .._fastcore import L
from .hook import HookCallback
from typing import Any

__all__ = ['activation_stats', 'ActivationStats']
def activation_stats(
    o: torch.Tensor,
    bins: int = 40,
    lo: float = 0.0,
    hi: float = 10.0,
    near: float = 0.05,
) -> torch.Tensor:
    """`[mean, variance (of the population), share near zero, *counts]`, computed where `o` is

    Args:
        o: the activations
        bins: bins of the histogram; 0 for none
        lo: where the first bin begins
        hi: where the last one ends; what is outside is not counted
        near: up to here a number is near zero
    """
    ...
def pooled(stats: torch.Tensor, ns: list[Any], group: list[Any], n_groups: int) -> torch.Tensor:
    """`[mean, standard deviation, share near zero, *counts]` of each group's parts together

    Args:
        stats: `activation_stats` of parts, one in a row
        ns: how many numbers each part has
        group: to which group it belongs
        n_groups: how many groups there are
    """
    ...
class ActivationStats(HookCallback):
    """Mean, standard deviation, share near zero and histogram of each layer's output in each training batch (fastai's `ActivationStats`)"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    with_hist: bool
    bins: int
    hist_range: tuple[Any, ...]
    kept: list[Any]
    waiting: list[Any]
    calls: list[Any]|None
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
        """Mean, standard deviation, share near zero and histogram of each layer's output in each training batch (fastai's `ActivationStats`)

        Args:
            with_hist: count histograms too
            modules: the layers to look at; None: all layers that have parameters
            every: look at every n-th training batch; None: at all
            bins: bins of the histogram
            hist_range: from where to where it goes
            kwargs: further arguments of `HookCallback`
        """
        ...
    def _reset(self) -> None: ...
    def before_fit(self) -> None: ...
    def before_pred(self) -> None: ...
    def after_pred(self) -> None: ...
    def after_backward(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_train(self) -> None: ...
    def cleanup(self) -> None: ...
    def hook(self, m: Any, i: Any, o: Any) -> None: ...
    def _close(self) -> None:
        """The batch is measured: keep its numbers, as one tensor on the device"""
        ...
    def _read(self) -> None:
        """Bring what waits on the device to the host, all at once"""
        ...
    def table(self) -> torch.Tensor:
        """All that was measured: batch x layer x (mean, standard deviation, share near zero, *counts)"""
        ...
    def layer_stats(self, idx: int) -> L:
        """A layer's means, standard deviations and shares near zero, a number for each batch that was looked at

        Args:
            idx: number of the layer, in the order of `modules`
        """
        ...
    def hist(self, idx: int) -> torch.Tensor:
        """The logarithm (`log1p`) of a layer's counts: bin x batch

        Args:
            idx: number of the layer
        """
        ...
    @property
    def stats(self) -> L:
        """For each batch, for each layer: a dictionary of `mean`, `std`, `near_zero` (and `hist`)"""
        ...
    def color_dim(self, idx: int, figsize: tuple[Any, ...] = (10, 5), ax: Any = None) -> Any:
        """Draw a layer's histograms over time; returns the matplotlib axes

        Args:
            idx: number of the layer
            figsize: inches
            ax: matplotlib axes to draw on; new ones if None
        """
        ...
    def color_dims(self, cols: int = 3, size: tuple[Any, ...] = (4, 2.5)) -> Any:
        """Draw the histograms of all layers in a grid; returns the matplotlib figure

        Args:
            cols: layers in a row
            size: inches for each layer
        """
        ...
    def plot_layer_stats(self, idx: int) -> Any:
        """Draw one layer's mean, standard deviation and share near zero over time; returns the matplotlib figure

        Args:
            idx: number of the layer
        """
        ...
    def plot_stats(self, idxs: Any = None, figsize: tuple[Any, ...] = (12, 3)) -> Any:
        """Draw the means, standard deviations and shares near zero of several layers over time; returns the matplotlib figure

        Args:
            idxs: numbers of layers; None: all of them
            figsize: inches
        """
        ...
