# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Shortcuts that fastai's users know: a function that changes a batch, a collector of batches, a replaced attribute"""
from collections.abc import Callable, Iterator
from .._fastcore import L
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['before_batch_cb', 'CollectDataCallback', 'replacing_yield', 'total_params']
def before_batch_cb(f: Callable[..., Any]) -> Callback:
    """Return a callback that replaces the input and the target of each batch by what `f` returns for them

    Args:
        f: (callback, xb, yb) -> (xb, yb); both are tuples
    """
    ...
class CollectDataCallback(Callback):
    """Collects input, target, prediction and loss of each batch in `data`, on the CPU: all of it stays in memory"""
    data: L
    def __init__(self) -> None: ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
def replacing_yield(o: Any, attr: str, val: Any) -> Iterator[None]:
    """For a function that is a `contextmanager`: replace an attribute, and put it back at the end, however that comes

    Args:
        o: the object
        attr: the name of the attribute
        val: its value meanwhile
    """
    ...
def total_params(m: nn.Module) -> tuple[int, bool]:
    """Return how many parameters `m` has, and whether the first of them is trained

    Args:
        m: the module
    """
    ...
