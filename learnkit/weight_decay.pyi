# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Splitting parameter groups, so that weight decay leaves norms and biases alone, and merging them again"""
from collections.abc import Iterable
from torch.optim import Optimizer
from typing import Any

def _pick(pg: Any, keep: Any) -> dict[Any, Any]: ...
def split_groups(opt: Optimizer, no_decay: Iterable[Any]) -> None:
    """Moves the parameters `no_decay` to parameter groups of their own, without weight decay

    Args:
        opt: A torch optimizer
        no_decay: Parameters that weight decay leaves alone
    """
    ...
def is_split(param_groups: list[Any]) -> bool:
    """Has weight decay split any of these parameter groups?

    Args:
        param_groups: PyTorch's groups, of an optimizer or of its state dict
    """
    ...
def merged_params(groups: list[Any], order: list[Any]) -> dict[Any, Any]:
    """Returns the parameters of a group that may be split, and their names, in their original order

    Args:
        groups: A parameter group, and its half without decay if it was split
        order: All parameters of the optimizer, in their original order

    Returns:
        'params', and 'param_names' if the groups have it
    """
    ...
def merge_groups(opt: Optimizer, order: list[Any]) -> None:
    """Undoes `split_groups`: every parameter decays again

    Args:
        opt: A torch optimizer
        order: All its parameters, in their original order
    """
    ...
