# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""List the layers of a model, with their output shapes and numbers of parameters"""
from collections.abc import Callable, Iterable
from torch import Tensor, nn
from typing import Any

__all__ = ['layers', 'count_params', 'layer_info']
def layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Returns `(name, module)` of each layer: each module with parameters of its own, or without modules in it

    Args:
        model: the model
    """
    ...
def count_params(ps: Iterable[Tensor]) -> int:
    """Returns the number of values in parameters; a lazy parameter, which has no shape yet, counts as 0

    Args:
        ps: the parameters
    """
    ...
def layer_info(model: nn.Module, call: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Returns for each call of a layer: (name, type, output shape, parameters, trainable parameters, counted above?)

    Args:
        model: the model
        call: a function without arguments that calls the model once

    Raises:
        TypeError: `call` is a function that calls the model, as in `layer_info(model, lambda: model(x))`
    """
    ...
