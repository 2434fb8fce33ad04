# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Many small batches as one large one, one large batch in small parts, and gradients that stay in bounds"""
from collections.abc import Callable
from ..callback import Callback
from ..events import CancelBatch
from typing import Any

__all__ = ['GradientAccumulation', 'GradientClip', 'MicroBatch']
def opt_params(opt: Any) -> list[Any]:
    """The parameters that `opt` steps"""
    ...
def is_sum(loss_func: Any) -> bool:
    """Does the loss add up its items, rather than average them?"""
    ...
def n_items(learn: Any) -> int:
    """How many items the Learner's current batch has"""
    ...
class GradientAccumulation(Callback):
    """Steps when `n_acc` items have been seen, with the gradient of their mean loss (fastai's name and order)"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    saves: tuple[Any, ...]
    count: int
    bs: Any
    tail: bool
    skipped: bool
    steps: Any
    n_acc: int
    def __init__(self, n_acc: int = 32) -> None:
        """Steps when `n_acc` items have been seen, with the gradient of their mean loss (fastai's name and order)

        Args:
            n_acc: items a step; at least as many as a batch has
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
        """What came together last is stepped, however little"""
        ...
    def cleanup(self) -> None: ...
    after_cancel_epoch = cleanup
    def _check(self, bs: Any) -> None: ...
class GradientClip(Callback):
    """Clips the gradients before each step: their common norm to `max_norm`, or each element to ±`value` (fastai's name and order)"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    norm: Any
    max_norm: float
    norm_type: float
    value: float|None
    def __init__(self, max_norm: float = 1.0, norm_type: float = 2.0, value: float|None = None) -> None:
        """Clips the gradients before each step: their common norm to `max_norm`, or each element to ±`value` (fastai's name and order)

        Args:
            max_norm: the largest norm of all gradients together
            norm_type: which norm; `inf` is the largest element
            value: clip each element to ±`value` instead
        """
        ...
    def before_step(self) -> None: ...
class PartDone(CancelBatch):
    """One part of a batch has left its gradient, and the next one follows"""
def split_items(b: Any, size: int, bs: int) -> list[Any]:
    """The batch in parts of `size` items, the last one maybe smaller

    Args:
        b: nested tensors, each with the items along its first dimension
        size: items a part
        bs: items in all
    """
    ...
class MicroBatch(Callback):
    """Runs each training batch in parts, for less memory and the same step"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    whole: tuple[Any, ...]|None
    size: int|None
    n: int|None
    split: Callable[..., Any]|None
    bs: Any
    preds: list[Any]
    losses: list[Any]
    part: Any
    n_parts: int
    last: Any
    def __init__(self, size: int|None = None, n: int|None = None, split: Callable[..., Any]|None = None) -> None:
        """Runs each training batch in parts, for less memory and the same step

        Args:
            size: items a part, or
            n: parts a batch
            split: how to take it apart: f((xb, yb), size) -> list of such pairs; None: along the first dimension
        """
        ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def after_backward(self) -> None: ...
    def after_batch(self) -> None:
        """The whole batch again"""
        ...
    def cleanup(self) -> None:
        """The batch ended before its last part: its gradients go, unless others are among them that count"""
        ...
    after_cancel_batch = cleanup
    after_cancel_train = cleanup
    after_cancel_epoch = cleanup
