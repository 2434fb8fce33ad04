# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Averages of a model's parameters and buffers, kept as lists of tensors: the arithmetic behind EMACallback"""
from collections.abc import Callable
from torch import nn
from typing import Any

__all__ = ['WeightAverages', 'ema_avg_fn']
def averageable(model: nn.Module, buffers: bool = True) -> dict[Any, Any]:
    """Returns what can be averaged: trained parameters, and floating point buffers that are saved

    Args:
        model: the model
        buffers: include buffers?

    Returns:
        name in the `state_dict` -> tensor
    """
    ...
def _wide(t: Any) -> Any: ...
class WeightAverages:
    """Running averages of tensors, by name"""
    values: dict[Any, Any]
    groups: list[Any]
    def __init__(self) -> None: ...
    def bind(self, weights: dict[Any, Any]) -> None:
        """Average these tensors from now on; the average of a new one starts as a copy

        Args:
            weights: name -> tensor, as `averageable` returns
        """
        ...
    def update(self, avg_fn: Callable[..., Any], n: int) -> None:
        """Update the averages with the current weights

        Args:
            avg_fn: `f(averages, weights, n)` on lists of tensors, such as PyTorch's `get_ema_multi_avg_fn()`
            n: the number of updates before this one; at 0 the weights are copied
        """
        ...
    def swap_in(self) -> list[Any]:
        """Put the averages into the model"""
        ...
    def put(self, values: list[Any]) -> None:
        """Put values into the model's weights

        Args:
            values: a list of tensors for each group: the averages, or what `swap_in` returned
        """
        ...
def ema_avg_fn(decay: float = 0.999, warmup: bool = True) -> Callable[..., Any]:
    """Returns the update of an exponential moving average (the warm-up is that of TensorFlow's)

    Args:
        decay: the share of the average that stays in an update, 0 to 1
        warmup: is the share lower in the first updates, `(1+n)/(10+n)`?

    Returns:
        `f(averages, weights, n)` on lists of tensors, as PyTorch's `AveragedModel` takes it too
    """
    ...
def _ema_update(decay: Any, warmup: Any, avgs: Any, weights: Any, n: Any) -> None: ...
