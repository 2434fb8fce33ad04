# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.summary()`: layers, output shapes, parameters, optimizer, loss function and callbacks"""
from collections.abc import Iterator
from contextlib import contextmanager
from torch import nn
from typing import Any

def _generators(dl: Any) -> list[Any]:
    """The random number generators that belong to a loader alone"""
    ...
@contextmanager
def untouched(model: nn.Module, dl: Any = None) -> Iterator[None]:
    """A block that may call `model` and draw a batch of `dl`; afterwards it restores modes, buffers and random numbers

    Args:
        model: the model
        dl: a loader; None: none
    """
    ...
def _shaped(model: Any) -> Any:
    """The model itself, or a copy of it if it has lazy layers"""
    ...
def _trainable(n: Any, n_trainable: Any, shared: Any) -> Any:
    """What the column 'trainable' says of a layer with `n` parameters"""
    ...
def _table(rows: Any) -> list[Any]:
    """The lines of the table of layers"""
    ...
