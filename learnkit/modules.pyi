# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The parameters and layers of a model, and the model inside its wrappers"""
from torch import nn
from typing import Any

__all__ = ['get_model', 'params', 'trainable_params', 'one_param', 'has_params', 'ParameterModule', 'flatten_model',
           'norm_bias_params']
def get_model(m: nn.Module) -> nn.Module:
    """Returns the model inside `DistributedDataParallel`, `DataParallel` and `torch.compile`

    Args:
        m: a model, perhaps wrapped
    """
    ...
def params(m: nn.Module) -> list[nn.Parameter]:
    """Returns all parameters of `m`

    Args:
        m: a model
    """
    ...
def trainable_params(m: nn.Module) -> list[nn.Parameter]:
    """Returns the parameters of `m` that require a gradient

    Args:
        m: a model
    """
    ...
def one_param(m: nn.Module) -> nn.Parameter|None:
    """Returns the first parameter of `m`, `None` if it has none

    Args:
        m: a model
    """
    ...
def has_params(m: nn.Module) -> bool:
    """Returns whether `m` has any parameters

    Args:
        m: a model
    """
    ...
class ParameterModule(nn.Module):
    """A module that holds a single parameter"""
    val: nn.Parameter
    def __init__(self, p: nn.Parameter) -> None:
        """A module that holds a single parameter

        Args:
            p: the parameter
        """
        ...
    def forward(self, x: Any) -> Any:
        """Returns `x`

        Args:
            x: the input
        """
        ...
def flatten_model(m: nn.Module) -> list[nn.Module]:
    """Returns the modules of `m` that have no children, in order

    Args:
        m: a model
    """
    ...
_norm_types: tuple[Any, ...]
def _is_norm(m: Any) -> Any: ...
def norm_bias_params(m: nn.Module, with_bias: bool = True) -> list[nn.Parameter]:
    """Returns the parameters of all normalization layers in `m`, and all biases

    Args:
        m: a model
        with_bias: the biases of other layers too?
    """
    ...
