# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""GradientAccumulation: one optimizer step for several batches, for batch sizes that do not fit in memory"""
from ..callback import Callback
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
class GradientAccumulation(Callback):
    """Steps the optimizer every `n_acc` items, with the gradient of their mean loss (fastai's name and order)"""
    count: int
    last: bool
    skipped: bool
    steps: bool
    accumulates: bool
    weigh: Any
    """a `BatchWeight`, from the first batch of a phase on"""
    weight: int
    unit: int
    factor: Any
    """what the loss of this batch is multiplied by for its gradients"""
    seen: Any
    """the inputs and targets that were weighed last,"""
    bs: int
    share: int
    n_acc: Any
    def __init__(self, n_acc: int = 32) -> None:
        """Steps the optimizer every `n_acc` items, with the gradient of their mean loss (fastai's name and order)

        Args:
            n_acc: number of items for each step; at least the batch size

        Raises:
            ValueError: `n_acc` must be a whole number of items, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def before_batch(self) -> None: ...
    def _weigh_batch(self) -> None: ...
    def _waits(self, t: Any) -> bool:
        """Args:
            t: to read a number
        """
        ...
    def after_loss(self) -> None: ...
    def after_cancel_backward(self) -> None: ...
    def after_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def _rescale(self) -> None:
        """Divide the gradients by the weight of their items"""
        ...
    def before_zero_grad(self) -> None: ...
    def after_train(self) -> None:
        """Step with the items that are left at the end of the training phase"""
        ...
    def cleanup(self) -> None: ...
    after_cancel_epoch = cleanup
    def _check(self, bs: Any) -> None: ...
def _at_least_one(w: Any) -> Any: ...
def _or_one(w: Any) -> Any:
    """Args:
        w: no target may count
    """
    ...
