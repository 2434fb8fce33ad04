# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Checking a saved optimizer state before it is loaded, restoring the optimizer if loading fails, clearing its state"""
from collections.abc import Iterator
from contextlib import contextmanager
from torch.optim import Optimizer
from typing import Any

def _check_entries(saved: Any, state: Any) -> None:
    """Raises ValueError if some parameters have entries in `state` that others lack

    Raises:
        ValueError: The saved optimizer has … for some of its parameters, and not for others: it is incomplete.
    """
    ...
def _check_numbers(saved: Any, state: Any) -> None:
    """Raises ValueError if the groups have a parameter twice, or do not have one that has entries in `state`

    Raises:
        ValueError: The saved optimizer has a … where the number of a parameter was expected.
        ValueError: The saved optimizer has parameter … more than once in its groups: it is damaged.
        ValueError: The saved optimizer has entries for parameters …, which none of its groups has: it is damaged.
    """
    ...
def _keeps_entries(opt: Any, saved: Any) -> Any: ...
def _check_all_there(opt: Any, sd: Any) -> None:
    """Raises ValueError if `sd` has lost entries; warns if a parameter that is trained has none

    Raises:
        ValueError: The saved optimizer has entries for … parameters, and had … when it was saved: it is incomplete.
    """
    ...
def _overlaps(t: Any) -> bool:
    """Do two elements of the tensor `t` share their memory?"""
    ...
def _check_tensors(state: Any) -> None:
    """Raises ValueError if an entry in `state` is a tensor that no step could update

    Raises:
        ValueError: The saved optimizer has '…' for parameter … as a tensor that cannot be updated: it ….
    """
    ...
def _check_state_shapes(groups: Any, saved: Any, state: Any) -> None:
    """Raises ValueError if an entry in `state` has not the shape of its parameter

    Raises:
        ValueError: The saved optimizer has '…' … for parameter …, which is …: it is of another model.
    """
    ...
def check_opt_state(opt: Optimizer, sd: dict[Any, Any]) -> None:
    """Raises ValueError if `sd` cannot be a state of the torch optimizer `opt`

    Args:
        opt: A torch optimizer
        sd: A state dict, from `state_dict` of a torch optimizer

    Raises:
        ValueError: An optimizer's state has 'state' and 'param_groups', not ….
        ValueError: The saved optimizer is of another kind: it has no …, which … needs.
        ValueError: The saved optimizer has groups of … parameters, this one of …: they need the same model, splitter …
        ValueError: The saved optimizer has a … where the number of a parameter was expected.
        ValueError: The saved optimizer has parameter … more than once in its groups: it is damaged.
        ValueError: The saved optimizer has entries for parameters …, which none of its groups has: it is damaged.
        ValueError: The saved optimizer has '…' for parameter … as a tensor that cannot be updated: it ….
        ValueError: The saved optimizer has entries for … parameters, and had … when it was saved: it is incomplete.
        ValueError: The saved optimizer has … for some of its parameters, and not for others: it is incomplete.
        ValueError: The saved optimizer has '…' … for parameter …, which is …: it is of another model.
    """
    ...
@contextmanager
def restore_on_error(opt: Optimizer) -> Iterator[None]:
    """Context manager that restores groups and state of `opt` if its block raises; a KeyError becomes a ValueError

    Args:
        opt: A torch optimizer

    Raises:
        ValueError: The saved optimizer has no …, which … needs.
    """
    ...
def lay_out_opt_state(opt: Optimizer, sd: dict[Any, Any]) -> dict[Any, Any]:
    """Returns `sd`, with each tensor of its parameter's shape laid out as the parameter is

    Args:
        opt: A torch optimizer
        sd: A state dict that fits it
    """
    ...
def settle_opt_state(opt: Optimizer) -> None:
    """Drops the state of parameters that the optimizer has no more; new ones get the state that they begin with

    Args:
        opt: A torch optimizer
    """
    ...
def clear_opt_state(opt: Optimizer) -> None:
    """Resets what a torch optimizer gathered over the steps: momentum, averages, counts

    Args:
        opt: A torch optimizer
    """
    ...
