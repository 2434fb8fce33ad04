# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Parameters, layers, and the model inside its wrappers"""
from torch import nn
from typing import Any

__all__ = ['get_model', 'params', 'trainable_params', 'one_param', 'has_params', 'ParameterModule', 'flatten_model',
           'norm_bias_params', 'noop']
def get_model(m: nn.Module) -> nn.Module:
    """The model inside `DistributedDataParallel`, `DataParallel` and `torch.compile`"""
    ...
def params(m: nn.Module) -> list[Any]:
    """All parameters of `m`"""
    ...
def trainable_params(m: nn.Module) -> list[Any]:
    """The parameters of `m` that want a gradient"""
    ...
def one_param(m: nn.Module) -> nn.Parameter|None:
    """The first parameter of `m`, `None` if it has none"""
    ...
def has_params(m: nn.Module) -> bool:
    """Has `m` any parameters?"""
    ...
class ParameterModule(nn.Module):
    """A module that is one parameter"""
    val: Any
    def __init__(self, p: Any) -> None: ...
    def forward(self, x: Any) -> Any: ...
def flatten_model(m: nn.Module) -> list[Any]:
    """The modules of `m` that have no children, in order"""
    ...
_norm_types: tuple[Any, ...]
def _is_norm(m: Any) -> Any: ...
def norm_bias_params(m: nn.Module, with_bias: bool = True) -> list[Any]:
    """The parameters of the normalizations in `m`, and all biases

    Args:
        with_bias: also the biases of other layers?
    """
    ...
def noop(x: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Do nothing, return `x`"""
    ...
