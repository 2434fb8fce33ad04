# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.summary()`: layers, output shapes, parameters, optimizer, loss function and callbacks"""
from typing import Any

def _shaped(model: Any) -> Any:
    """The model itself, or a copy of it if it has lazy layers"""
    ...
def _trainable(n: Any, n_trainable: Any, shared: Any) -> Any:
    """What the column 'trainable' says of a layer with `n` parameters"""
    ...
def _table(rows: Any) -> list[Any]:
    """The lines of the table of layers"""
    ...
