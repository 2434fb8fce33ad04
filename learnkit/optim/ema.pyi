# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The average over the last steps is better than the last step"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['Averages', 'EMACallback']
def averageable(model: nn.Module, buffers: bool = True) -> dict[Any, Any]:
    """What can be averaged in `model`, by its name in the `state_dict`: trained parameters, and saved floating point buffers

    Args:
        buffers: the buffers too?
    """
    ...
def _wide(t: Any) -> Any: ...
class Averages:
    """Averages of some tensors, by name"""
    values: dict[Any, Any]
    groups: list[Any]
    def __init__(self) -> None: ...
    def bind(self, weights: dict[Any, Any]) -> None:
        """Average these from now on; one that is new begins as a copy"""
        ...
    def update(self, avg_fn: Callable[..., Any], n: int) -> None:
        """Take in the weights as they are now, being the `n`-th; the first is copied"""
        ...
    def swap_in(self) -> list[Any]:
        """Put the averages into the weights; returns the weights"""
        ...
    def put(self, values: list[Any]) -> None:
        """Put values into the weights: the averages, or what `swap_in` gave"""
        ...
class EMACallback(Callback):
    """Keeps an exponential moving average of the weights; validates, saves, and by default ends the fit with it"""
    order: int
    modes: tuple[Any, ...]
    saves: tuple[Any, ...]
    n_avg: int
    n_step: int
    cancelled: bool
    fitting: bool
    kept: Any
    depth: int
    decay: float
    every: int
    start: int|float
    buffers: bool
    at_end: bool
    avg_fn: Callable[..., Any]|None
    avgs: Averages
    def __init__(
        self,
        decay: float = 0.999,
        every: int = 1,
        start: int|float = 0,
        buffers: bool = True,
        at_end: bool = True,
        avg_fn: Callable[..., Any]|None = None,
    ) -> None:
        """Keeps an exponential moving average of the weights; validates, saves, and by default ends the fit with it

        Args:
            decay: how much of the average stays in an update
            every: update after each so many steps
            start: begin after this many steps or, given as a float, at this part of the fit
            buffers: average the buffers too? False: they stay those of the model
            at_end: does the model take the averaged weights over when the fit ends?
            avg_fn: another average: `f(averages, weights, n)`, lists of tensors, as torch's `get_swa_multi_avg_fn()`
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_cancel_step(self) -> None: ...
    def after_step(self) -> None: ...
    def after_fit(self) -> None: ...
    def after_load_model(self) -> None:
        """Args:
            self: it was the average of other weights
        """
        ...
    @property
    def averages(self) -> dict[Any, Any]:
        """The averaged tensors, by their names in the model's `state_dict`; empty before the first update"""
        ...
    @averages.setter
    def averages(self, values: dict[Any, Any]) -> None: ...
    def swap_in(self) -> None:
        """Put the averaged weights into the model, if there are any"""
        ...
    def swap_out(self) -> None:
        """Put the trained weights back, bit for bit"""
        ...
    @contextmanager
    def averaged(self) -> Iterator[Any]:
        """Have the averaged weights in the model for the length of a `with` block"""
        ...
    def before_validate(self) -> None: ...
    def before_save_model(self) -> None: ...
    def after_validate(self) -> None: ...
    def after_save_model(self) -> None: ...
    def before_batch(self) -> None: ...
    before_pred = before_batch
    before_backward = before_batch
    before_step = before_batch
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
