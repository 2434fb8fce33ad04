# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""EMACallback: validates, saves and ends training with averaged weights (EMA, or SWA with another average)"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ..callback import Callback
from .weight_average import WeightAverages
from typing import Any

__all__ = ['EMACallback']
class EMACallback(Callback):
    """Keeps an exponential moving average of the weights; validates, saves, and by default ends the fit with it"""
    n_avg: int
    n_step: int
    cancelled: bool
    fitting: bool
    kept: Any
    depth: int
    together: bool
    decay: Any
    every: Any
    start: int|float
    buffers: bool
    at_end: bool
    avgs: WeightAverages
    avg_fn: Any
    def __init__(
        self,
        decay: float = 0.999,
        every: int = 1,
        start: int|float = 0,
        buffers: bool = True,
        at_end: bool = True,
        avg_fn: Callable[..., Any]|None = None,
        warmup: bool = True,
    ) -> None:
        """Keeps an exponential moving average of the weights; validates, saves, and by default ends the fit with it

        Args:
            decay: the share of the average that stays in an update, 0 to 1
            every: the number of steps from one update to the next
            start: start after this many steps or, as a float, after this fraction of the fit
            buffers: average buffers too? False: they stay those of the model
            at_end: does the model take over the averaged weights when the fit ends?
            avg_fn: another average, such as PyTorch's `get_swa_multi_avg_fn()`: f(averages, weights, n)
            warmup: is the decay lower in the first updates: `(1+n)/(10+n)`? See `ema_avg_fn`

        Raises:
            ValueError: `decay` must be the fraction of the average that stays
            ValueError: `every` must be a whole number of steps, 1 or more
            ValueError: start is a number of steps, or as a float a part of the fit from 0. to 1.
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_cancel_step(self) -> None: ...
    def after_step(self) -> None: ...
    def after_fit(self) -> None: ...
    def after_load_model(self) -> None: ...
    @property
    def averages(self) -> dict[Any, Any]:
        """The averaged tensors, by their names in the model's `state_dict`; empty before the first update"""
        ...
    @averages.setter
    def averages(self, values: dict[Any, Any]) -> None:
        """Args:
            values: the averaged tensors, by name
        """
        ...
    def swap_in(self) -> None:
        """Put the averaged weights into the model, if there are any"""
        ...
    def swap_out(self) -> None:
        """Restore the trained weights, bit for bit"""
        ...
    @contextmanager
    def averaged(self) -> Iterator[Any]:
        """Context manager with the averaged weights in the model; raises RuntimeError if there are none

        Raises:
            RuntimeError: there are no averaged weights: none before the first step of a fit, and none of a model that was …
        """
        ...
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    def before_batch(self) -> None: ...
    before_pred = before_batch
    before_backward = before_batch
    before_step = before_batch
    def before_save_model(self) -> None: ...
    after_save_model = after_validate
    after_epoch = swap_out
    def cleanup(self) -> None: ...
