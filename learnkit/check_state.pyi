# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Compare names, shapes and types with the model and the optimizer before the first weight is changed"""
import torch
from typing import Any

def mismatch(new: Any, own: torch.Tensor) -> str:
    """Returns why `new` cannot be copied to `own`; empty if it can

    Args:
        new: the value in the file
        own: the tensor that it is to replace
    """
    ...
def _first(names: Any) -> Any: ...
def check_state(model: torch.nn.Module, state: dict[Any, Any], strict: bool = True) -> None:
    """Raise ValueError if `state` does not fit the model; changes nothing

    Args:
        model: the model whose weights are to be replaced
        state: the new weights by name
        strict: refuse a state that lacks weights, or has weights that the model does not have

    Raises:
        ValueError: expected weights by name
        ValueError: these weights are of another model: ……
    """
    ...
def _kind(o: Any) -> str:
    """Returns 'a number' (also for None, which is one that is not set), 'numbers', or the type's name"""
    ...
def _opt_fault(own: Any, state: Any) -> str|None:
    """What is wrong with the optimizer state `state`, compared with `own`; None if nothing is"""
    ...
def check_opt_state(opt: Any, state: dict[Any, Any]) -> None:
    """Raise ValueError if `state` cannot be that of an optimizer like `opt`; changes nothing

    Args:
        opt: the optimizer whose state is to be replaced
        state: the new state

    Raises:
        ValueError: this is not a state of the optimizer (…): …
    """
    ...
