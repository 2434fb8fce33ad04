# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Who hears what in the loop, and what the model is made of"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from torch import nn
from typing import Any

__all__ = ['shape_text', 'count_params', 'layer_info']
class Text(str):
    """Text that shows as itself"""
    def __repr__(self) -> str: ...
def layers(model: nn.Module) -> list[Any]:
    """`(name, module)` of each module that has no modules in it, or has parameters of its own

    Args:
        model: the model
    """
    ...
def shape_text(o: Any) -> str:
    """The shape of what a layer gave: `8 x 4`, `(8 x 4, 2 x 8)`, `{a: 8 x 4}`"""
    ...
def _no_shape(p: Any) -> Any: ...
def count_params(ps: Any) -> int:
    """How many numbers they hold; a lazy parameter, which has no shape yet, holds none

    Args:
        ps: parameters
    """
    ...
def layer_info(model: nn.Module, call: Callable[..., Any]) -> list[Any]:
    """For each call of a layer: (name, type, output shape, own parameters, of these trainable, is it counted above?)

    Args:
        model: the model
        call: a function that calls it once
    """
    ...
def _generators(dl: Any) -> list[Any]:
    """The random number generators that belong to a loader alone"""
    ...
def _is_lazy(model: Any) -> Any: ...
@contextmanager
def untouched(model: nn.Module, dl: Any = None) -> Iterator[None]:
    """A block that may call `model` and draw a batch of `dl`: modes, buffers and random numbers are afterwards what they were

    Args:
        model: the model
        dl: a loader
    """
    ...
def _trained(p: Any, q: Any, shared: Any) -> Any: ...
