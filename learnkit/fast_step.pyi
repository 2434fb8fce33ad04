# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""An optimizer step without the wrappers around it, when nothing uses them"""
from collections.abc import Callable
from torch.optim import Optimizer
from typing import Any

def unwrapped_step(step: Callable[..., Any]) -> Callable[..., Any]|None:
    """Returns the update inside PyTorch's wrappers around an optimizer's `step`

    Args:
        step: The `step` of an optimizer class

    Returns:
        None if it is not wrapped as PyTorch 2 wraps its own optimizers
    """
    ...
def fast_step(opt: Optimizer, closure: Callable[..., Any]|None = None) -> Any:
    """Makes an optimizer step, without PyTorch's wrappers around it if nothing uses them

    Args:
        opt: A torch optimizer
        closure: Evaluates the model again and returns the loss, for optimizers such as LBFGS

    Returns:
        What the optimizer's `step` returns: the loss of `closure`, or None
    """
    ...
def _noticed_step(opt: Any, update: Any) -> Any:
    """A step that is followed by hooks, or that a scheduler of PyTorch notes"""
    ...
