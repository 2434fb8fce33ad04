# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`BaseLoss`, and what the Learner asks of any loss: activation, decoded predictions, one loss for each item"""
import torch.nn as nn
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fastcore.basics import noop
from torch import Tensor
from typing import Any

__all__ = ['NoneReduce', 'BaseLoss', 'loss_activation', 'loss_decodes', 'none_reduce']
def check_reduction(v: Any) -> str:
    """Returns `v`; raises ValueError if it is no reduction that PyTorch's losses have

    Args:
        v: what should be the `reduction` of a loss

    Raises:
        ValueError: `reduction` must be … or
    """
    ...
class BaseLoss(nn.Module):
    """Wraps a PyTorch loss: flattens predictions and targets, checks shapes, has `activation` and `decodes`"""
    y_int: bool
    func: Any
    _kind: Any
    axis: int
    flatten: bool
    floatify: bool
    is_2d: bool
    def __init__(
        self,
        loss_cls: Callable[..., Any]|type[Any],
        *args: Any,
        axis: int = -1,
        flatten: bool = True,
        floatify: bool = False,
        is_2d: bool = True,
        **kw: Any,
    ) -> None:
        """Wraps a PyTorch loss: flattens predictions and targets, checks shapes, has `activation` and `decodes`

        Args:
            loss_cls: Class of the loss, called with `*args, **kw`; or the loss itself, if it is a module
            args: Positional arguments of the class
            axis: Axis of the predictions that holds the classes
            flatten: Join all other axes into one?
            floatify: Convert the targets to floats?
            is_2d: Keep the axis of the classes apart when flattening?
            kw: Keyword arguments of the class

        Raises:
            TypeError: `loss_cls` must be the class of a loss
        """
        ...
    @property
    def reduction(self) -> str:
        """How the losses of a batch become one: 'mean', 'sum' or 'none'"""
        ...
    @reduction.setter
    def reduction(self, v: str) -> None: ...
    def forward(self, pred: Tensor, targ: Tensor, **kw: Any) -> Tensor:
        """Returns the loss of `pred` against `targ`, both flattened; raises TypeError or ValueError if they do not fit

        Args:
            pred: the model's output
            targ: the targets
            kw: passed to the loss function
        """
        ...
    def activation(self, x: Tensor) -> Tensor:
        """Turns model outputs into predictions

        Args:
            x: model outputs
        """
        ...
    def decodes(self, x: Tensor) -> Tensor:
        """Turns predictions into answers

        Args:
            x: predictions
        """
        ...
    def check(self, pred: Tensor, targ: Tensor) -> None:
        """Raises TypeError or ValueError if shapes or types of `pred` and `targ` cannot be right; reads no values

        Args:
            pred: Predictions
            targ: Targets

        Raises:
            TypeError: `…` wants a tensor of …, but got a `…`. Pick or join its parts, for instance in a callback's …
        """
        ...
    def prepare(self, pred: Tensor, targ: Tensor) -> tuple[Tensor, Tensor]:
        """Returns predictions and targets with classes last, other axes joined, and targets of the right type

        Args:
            pred: Predictions
            targ: Targets

        Returns:
            Both as the loss inside wants them
        """
        ...
def loss_activation(loss_func: Any) -> Callable[..., Any]:
    """Returns the activation of a loss: its own `activation`, otherwise a function that changes nothing

    Args:
        loss_func: Any loss function

    Returns:
        Function of the model's outputs
    """
    ...
def loss_decodes(loss_func: Any, act: Callable[..., Any] = noop) -> Callable[..., Any]:
    """Returns the function from predictions to answers: the loss's own `decodes`, or what suits PyTorch's loss

    Args:
        loss_func: Any loss function
        act: Activation that the predictions went through, if it is not the loss's own

    Returns:
        Function of the predictions
    """
    ...
def _takes_reduction(f: Any) -> Any:
    """Can `f` be called with `reduction='none'`?"""
    ...
@contextmanager
def _set_to_none(f: Any, loss_func: Any) -> Iterator[Any]: ...
def none_reduce(loss_func: Callable[..., Any]) -> AbstractContextManager[Callable[..., Any]]:
    """Context manager in which `loss_func` returns one loss for each item; raises TypeError if it cannot

    Args:
        loss_func: A loss with an attribute or an argument `reduction`

    Returns:
        Gives the loss function to call within the block

    Raises:
        TypeError: `…` cannot give one loss for each item: it has no attribute and no argument `reduction`. Write `def …
    """
    ...
NoneReduce = none_reduce
