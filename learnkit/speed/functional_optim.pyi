# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The updates of SGD, Adam and AdamW, and gradient clipping, as functions that `torch.compile` can compile"""
import torch
from collections.abc import Callable
from torch.optim import Optimizer
from typing import Any

def sgd_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.SGD` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, momentum, dampening and weight decay, as 0-dimensional float64 tensors
        options: `has_wd`, `has_mom` and `nesterov`
    """
    ...
def adam_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.Adam` or `AdamW` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, both betas, epsilon and weight decay, as 0-dimensional float64 tensors
        options: `has_wd` and `decoupled_weight_decay`
    """
    ...
class FunctionalOptim:
    """An optimizer in functional form: how it updates one parameter, and which settings that takes"""
    n_hypers: Any
    look: Any
    step: Callable[..., Any]
    hyper_names: tuple[Any, ...]
    option_names: tuple[Any, ...]
    has_state: bool
    def __init__(
        self,
        step: Callable[..., Any],
        hyper_names: tuple[Any, ...],
        option_names: tuple[Any, ...] = (),
        has_state: bool = True,
    ) -> None:
        """An optimizer in functional form: how it updates one parameter, and which settings that takes

        Args:
            step: updates one parameter: `step(p, grad, state, hypers, options)`
            hyper_names: the hyper-parameters of a parameter group: numbers, or tuples of numbers
            option_names: the settings that select another formula, such as 'nesterov'
            has_state: does it keep a state also without momentum?
        """
        ...
    def hypers(self, opt: Optimizer) -> list[tuple[Any, ...]]:
        """Returns the current hyper-parameters of each parameter group

        Args:
            opt: the optimizer
        """
        ...
    def options(self, opt: Optimizer) -> tuple[Any, ...]:
        """Returns the options of each parameter group, as pairs of name and value; a compiled program depends on them

        Args:
            opt: the optimizer
        """
        ...
_adam: FunctionalOptim
_sgd: FunctionalOptim
functional_optims: dict[Any, Any]
def torch_opt(opt: Any) -> Any:
    """Returns the torch optimizer inside an `OptimWrapper`; any other optimizer as it is

    Args:
        opt: an optimizer, such as `learn.opt`
    """
    ...
def step_hooks(opt: Optimizer) -> list[dict[Any, Any]]:
    """Returns the tables of functions that PyTorch calls before and after a step

    Args:
        opt: a torch optimizer
    """
    ...
def step_notices(opt: Optimizer) -> list[Callable[..., Any]]:
    """Returns calls of the hooks that only want to know that there was a step

    Args:
        opt: a torch optimizer
    """
    ...
def functional_optim(opt: Any) -> FunctionalOptim|None:
    """Returns the functional form of an optimizer; `None` if there is none that does all that the optimizer does

    Args:
        opt: an optimizer, such as `learn.opt`
    """
    ...
def _has_odd_options(opt: Any) -> Any: ...
def clip_grads(
    grads: list[Any],
    limit: torch.Tensor,
    norm_type: float,
    by_value: bool,
) -> tuple[list[Any], torch.Tensor|None]:
    """Clips gradients as `torch.nn.utils` does; returns the clipped gradients, and their norm before that

    Args:
        grads: the gradients, left as they are
        limit: the largest norm of all gradients together; with `by_value` the largest absolute value
        norm_type: which norm: 2 is the Euclidean
        by_value: clip each element instead of the norm?
    """
    ...
