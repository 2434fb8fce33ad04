# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""MicroBatch: runs each training batch in parts that fit in memory, with one optimizer step for the whole batch"""
from collections.abc import Callable
from ..callback import Callback
from ..events import CancelBatch
from typing import Any

__all__ = ['MicroBatch']
class PartDone(CancelBatch):
    """Ends one part of a batch after its backward pass; the next part follows"""
def split_items(b: Any, size: int, bs: int) -> list[Any]:
    """Split a batch into parts of `size` items; raises ValueError for a tensor whose length is not `bs`

    Args:
        b: a batch: nested tensors, each with the items along its first dimension
        size: number of items in a part
        bs: number of items in the batch

    Returns:
        the parts, nested as the batch; the last one may be smaller
    """
    ...
class MicroBatch(Callback):
    """Runs each training batch in parts, with one optimizer step: less memory, the same gradient"""
    whole: tuple[Any, ...]|None
    weigh: Any
    """a `BatchWeight`, from the first batch of a phase on"""
    size: Any
    n: Any
    split: Callable[..., Any]|None
    preds: list[Any]
    losses: list[Any]
    weight: Any
    part: Any
    n_parts: int
    last: Any
    def __init__(self, size: int|None = None, n: int|None = None, split: Callable[..., Any]|None = None) -> None:
        """Runs each training batch in parts, with one optimizer step: less memory, the same gradient

        Args:
            size: number of items in a part; give this or `n`
            n: number of parts in a batch
            split: f((xb, yb), size) -> list of (xb, yb); None: along the first dimension

        Raises:
            ValueError: write MicroBatch(size) for parts of `size` items, or MicroBatch(n=4) for 4 parts of each batch
            ValueError: `size` must be a whole number, 1 or more
            ValueError: `n` must be a whole number, 1 or more
        """
        ...
    def before_train(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def after_backward(self) -> None: ...
    def after_batch(self) -> None:
        """Restore the whole batch, with its predictions and its loss"""
        ...
    def cleanup(self) -> None:
        """If the batch ended before its last part, discard its gradients, unless `GradientAccumulation` needs them"""
        ...
    after_cancel_batch = cleanup
    after_cancel_train = cleanup
    after_cancel_epoch = cleanup
