# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""How much a batch weighs in a mean: its targets that count, the sum of their class weights, or what the loss says"""
from collections.abc import Callable
from torch import Tensor
from typing import Any

__all__ = ['count_targets', 'weight_rule', 'BatchWeight', 'n_items']
def loss_setting(f: Any, name: str, default: Any = None) -> Any:
    """Returns a setting of a loss function: the argument that a `partial` fixes, or its attribute

    Args:
        f: a loss function, a `partial` of one, or a module with the loss in its attribute `func`
        name: the attribute or argument, such as 'reduction'
        default: returned if there is no such setting

    Returns:
        its value
    """
    ...
def is_sum(loss_func: Any) -> bool:
    """Whether the loss is a sum over the items, rather than their mean

    Args:
        loss_func: a loss function

    Returns:
        True for a sum, False for a mean
    """
    ...
def ignored_class(loss_func: Any) -> int:
    """Returns the class number that the loss function ignores; -100, PyTorch's default, if it does not say

    Args:
        loss_func: a loss function
    """
    ...
def count_targets(yb: Any, ignore_index: int = -100) -> int|Tensor:
    """Returns how many targets count, without waiting for the device; how many items, if that is not known

    Args:
        yb: the targets of a batch
        ignore_index: the class number that does not count
    """
    ...
_by_class: tuple[Any, ...]
def _loss_inside(f: Any) -> Any: ...
def _sum_of_class_weights(yb: Any, weight: Any, ignore_index: Any) -> Any: ...
def _own(f: Any, yb: Any) -> Any: ...
def _number_of_lengths(yb: Any) -> Any: ...
def weight_rule(loss_func: Any, ignore_index: int|None = None) -> Callable[..., Any]:
    """Returns a function from the targets of a batch to its weight: the number that the batch's loss was divided by

    Args:
        loss_func: a loss function, a model that computes its loss itself, or a metric function
        ignore_index: the class number that does not count; None: that of `loss_func`
    """
    ...
class BatchWeight:
    """How much each batch of a phase weighs in a mean of losses, without waiting for the device"""
    rule: Any
    sums: Any
    reduces: Any
    def __init__(self, learn: Any) -> None:
        """How much each batch of a phase weighs in a mean of losses, without waiting for the device

        Args:
            learn: the Learner; its loss function is looked at now
        """
        ...
    def __call__(self, learn: Any) -> int|float|Tensor:
        """Returns how much the Learner's current batch weighs

        Args:
            learn: the Learner
        """
        ...
def n_items(learn: Any) -> int:
    """Returns the number of items in the Learner's current batch

    Args:
        learn: the Learner

    Returns:
        the batch size
    """
    ...
