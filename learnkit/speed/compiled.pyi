# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Model, loss, gradients and step as one function of tensors, for a compiler to take as a whole"""
import torch
from collections.abc import Callable
from typing import Any

def sgd(p: Any, g: Any, s: dict[Any, Any], h: tuple[Any, ...], is_: dict[Any, Any]) -> None:
    """One step of `torch.optim.SGD` for the parameter `p` with gradient `g` and state `s`"""
    ...
def adam(p: Any, g: Any, s: dict[Any, Any], h: tuple[Any, ...], is_: dict[Any, Any]) -> None:
    """One step of `torch.optim.Adam` or `AdamW`"""
    ...
def flat(vs: Any) -> list[Any]:
    """What nested lists and tuples hold"""
    ...
class Formula:
    """How a torch optimizer steps, as a function of tensors alone"""
    n: Any
    step: Callable[..., Any]
    names: tuple[Any, ...]
    flags: tuple[Any, ...]
    def __init__(self, step: Callable[..., Any], names: tuple[Any, ...], flags: tuple[Any, ...] = ()) -> None:
        """How a torch optimizer steps, as a function of tensors alone

        Args:
            step: (p, g, state, hypers, is_); changes `p` and its state
            names: the hyper-parameters in a group that are numbers, or tuples of them
            flags: those that say which formula it is
        """
        ...
    def numbers(self, opt: Any) -> list[Any]:
        """The hyper-parameters of each group, as they are now"""
        ...
    def kinds(self, opt: Any) -> tuple[Any, ...]:
        """What is compiled into the program, for each group"""
        ...
_adam: Formula
_formulas: dict[Any, Any]
def formula_for(opt: Any) -> Formula|None:
    """Its formula; None if it has none, or if the formula does not know all that it is to do

    Args:
        opt: a torch optimizer
    """
    ...
def clipped(grads: list[Any], limit: torch.Tensor, norm_type: float, by_value: bool) -> tuple[Any, ...]:
    """Gradients in bounds, as `torch.nn.utils` clips them

    Args:
        grads: gradients
        limit: their largest norm, or the largest element
        norm_type: which norm
        by_value: clip each element instead

    Returns:
        the clipped ones, and the norm that they had
    """
    ...
def batch_func(
    model: Callable[..., Any],
    loss_func: Callable[..., Any],
    update: Callable[..., Any]|None = None,
    amp: tuple[Any, ...]|None = None,
) -> Callable[..., Any]:
    """The inside of a batch as a function of tensors

    Args:
        update: (params, grads, states, h) -> what else is to be known; None: the gradients are
        amp: device type and 16-bit type to compute predictions and loss in, as `MixedPrecision` does
    """
    ...
def _detach(o: Any) -> Any: ...
def update_func(
    step: Callable[..., Any],
    n: int,
    kinds: tuple[Any, ...],
    group_of: tuple[Any, ...],
    clips: tuple[Any, ...] = (),
) -> Callable[..., Any]:
    """What becomes of the gradients: clipping and step; `h` has the hyper-parameters, group by group, and then the limits for clipping

    Args:
        step: a formula such as `sgd`
        n: how many hyper-parameters it takes
        kinds: `is_` for each group
        group_of: which group each parameter is in
        clips: for each clipping: which norm, and whether by value
    """
    ...
