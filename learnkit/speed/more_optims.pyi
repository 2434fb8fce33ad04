# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The updates of RMSprop, Adagrad, NAdam, Adamax and Muon as functions, and how an optimizer of your own is added"""
import torch
from typing import Any

def rmsprop_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.RMSprop` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, alpha, epsilon, weight decay and momentum, as 0-dimensional float64 tensors
        options: `has_wd`, `has_mom` and `centered`
    """
    ...
def adagrad_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.Adagrad` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, its decay, weight decay and epsilon, as 0-dimensional float64 tensors
        options: `has_wd`
    """
    ...
def nadam_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.NAdam` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, both betas, epsilon, weight decay and momentum decay
        options: `has_wd` and `decoupled_weight_decay`
    """
    ...
def adamax_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.Adamax` does

    Args:
        p: the parameter, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, both betas, epsilon and weight decay, as 0-dimensional float64 tensors
        options: `has_wd`
    """
    ...
def muon_step(
    p: torch.Tensor,
    grad: torch.Tensor,
    state: dict[Any, Any],
    hypers: tuple[Any, ...],
    options: dict[Any, Any],
) -> None:
    """Updates one parameter as `torch.optim.Muon` does

    Args:
        p: the parameter, a matrix, updated in place
        grad: its gradient
        state: the optimizer's state of `p`, updated in place
        hypers: learning rate, momentum and weight decay, as 0-dimensional float64 tensors
        options: `nesterov`, `ns_coefficients`, `ns_steps`, `eps` and `adjust_lr_fn`
    """
    ...
def _orthogonal(m: Any, coefficients: Any, n: Any, eps: Any) -> Any: ...
def _size_factor(how: Any, n_out: Any, n_in: Any) -> Any: ...
