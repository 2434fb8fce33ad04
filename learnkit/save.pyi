# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Save the model and the optimizer to a file, and load them again"""
from typing import Any

_checkpoint_keys: set[Any]
def _model_state(file: Any, state: Any) -> Any:
    """`(weights, optimizer state or None)` of what `read_state` returned; raises ValueError for a file of another kind"""
    ...
