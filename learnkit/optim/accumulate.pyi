# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""GradientAccumulation: one optimizer step for several batches, for batch sizes that do not fit in memory"""
from ..callback import Callback
from ..learner import Learner
from typing import Any

__all__ = ['GradientAccumulation']
def opt_params(opt: Any) -> list[Any]:
    """Returns the parameters that `opt` updates

    Args:
        opt: the optimizer

    Returns:
        its parameters, of all parameter groups
    """
    ...
def loss_setting(f: Any, name: str, default: Any = None) -> Any:
    """Returns a setting of a loss function: its attribute, or the argument that a `partial` fixes

    Args:
        f: a loss function, or a `partial` of one
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
def n_items(learn: Learner) -> int:
    """Returns the number of items in the Learner's current batch

    Args:
        learn: the Learner

    Returns:
        the batch size
    """
    ...
class GradientAccumulation(Callback):
    """Steps the optimizer every `n_acc` items, with the gradient of their mean loss (fastai's name and order)"""
    count: int
    bs: Any
    last: bool
    skipped: bool
    steps: Any
    n_acc: Any
    def __init__(self, n_acc: int = 32) -> None:
        """Steps the optimizer every `n_acc` items, with the gradient of their mean loss (fastai's name and order)

        Args:
            n_acc: number of items for each step; at least the batch size
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def after_cancel_backward(self) -> None: ...
    def after_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def before_zero_grad(self) -> None: ...
    def after_train(self) -> None:
        """Step with the items that are left at the end of the training phase"""
        ...
    def cleanup(self) -> None: ...
    after_cancel_epoch = cleanup
    def _check(self, bs: Any) -> None: ...
