# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Model, loss, gradients and optimizer update of one batch as a function of tensors"""
from collections.abc import Callable
from .functional_optim import FunctionalOptim
from typing import Any

def make_update(
    optim: FunctionalOptim,
    options: tuple[Any, ...],
    group_of: tuple[Any, ...],
    clips: tuple[Any, ...] = (),
) -> Callable[..., Any]:
    """Returns a function that clips gradients, updates the parameters, and returns the norms of the gradients

    Args:
        optim: how one parameter is updated
        options: the options of each parameter group, from `optim.options`
        group_of: the number of each parameter's group
        clips: for each clipping: which norm, and whether by value
    """
    ...
def add_grads(params: list[Any], grads: list[Any]) -> None:
    """Adds gradients to those that the parameters have, as `backward` does

    Args:
        params: parameters
        grads: the gradient of each that a train step returned; None where the loss does not depend on it
    """
    ...
def _own_memory(p: Any, g: Any) -> Any: ...
def _detach(o: Any) -> Any: ...
def make_train_step(
    model: Callable[..., Any],
    loss_func: Callable[..., Any],
    update: Callable[..., Any]|None = None,
    amp: tuple[Any, ...]|None = None,
) -> Callable[..., Any]:
    """Returns a function of tensors that trains on one batch, and returns prediction, loss, and norms or gradients

    Args:
        model: called with the inputs
        loss_func: called with the prediction and the targets
        update: from `make_update`; None: return the gradients instead
        amp: device type and 16-bit type for mixed precision, as in `MixedPrecision`
    """
    ...
