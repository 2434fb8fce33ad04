# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""MixHandler: what MixUp and CutMix share, mixing targets or losses to go with mixed inputs"""
import torch
from functools import partial
from ..callback import Callback
from typing import Any

__all__ = ['MixHandler']
def blend(t: Any, other: torch.Tensor, lam: torch.Tensor) -> Any:
    """Returns `lam` of each item plus `1-lam` of its partner

    Args:
        t: the items, along the first dimension; anything but a tensor is returned unchanged
        other: for each item, the index of the item it is mixed with
        lam: the share of the item itself, 0 to 1: one number for each item, or one for all

    Returns:
        the mixed items
    """
    ...
def reduce_loss(loss: torch.Tensor, reduction: str = 'mean') -> torch.Tensor:
    """Reduce the losses of the items to the loss of the batch (fastai's name)

    Args:
        loss: the loss of each item
        reduction: 'mean' or 'sum'; anything else leaves the losses as they are

    Returns:
        the loss of the batch
    """
    ...
class MixedLoss(partial[Any]):
    """Wraps a loss function: batches that `mixer` has mixed get a mixed loss, all others the original one"""
    mixer: MixHandler
    def __call__(self, pred: Any, *yb: Any, **kw: Any) -> Any: ...
    def batch_weight(self, *yb: Any) -> Any:
        """How much a batch weighs: a mixed loss is a mean over items, any other that of the loss function itself

        Args:
            yb: targets
        """
        ...
class MixHandler(Callback):
    """Base class of MixUp and CutMix: mixes the targets, or the losses, of training batches (fastai's name)"""
    lam: torch.Tensor|None
    """the share of each item itself; None while the batch is not mixed"""
    yb1: tuple[Any, ...]|None
    """the targets of the other items"""
    part: slice|None
    """the items of the current micro-batch (`MicroBatch`)"""
    mixed: MixedLoss|None
    old_lf: Any
    each: Any
    alpha: float
    distrib: Any
    drawn_on: Any
    y_int: Any
    def __init__(self, alpha: float = 0.5) -> None:
        """Base class of MixUp and CutMix: mixes the targets, or the losses, of training batches (fastai's name)

        Args:
            alpha: both parameters of the Beta distribution of `lam`: near 0 hardly any mixing, 1 is uniform

        Raises:
            ValueError: alpha, the parameter of a Beta distribution, must be a number above 0
        """
        ...
    def wrap(self) -> None:
        """Wrap the Learner's loss function in a `MixedLoss`; raises ValueError if it cannot be mixed

        Raises:
            ValueError: … and … would mix the same batches: use one of them, or let `run` alternate them
            ValueError: … can't mix a loss that the model computes itself: pass `loss_func=` to the Learner
        """
        ...
    def unmix(self) -> None:
        """Forget how the current batch was mixed"""
        ...
    after_batch = unmix
    def before_micro_batch(self, items: Any) -> None: ...
    def before_train(self) -> None: ...
    def cleanup(self) -> None: ...
    @property
    def stack_y(self) -> bool:
        """Whether the losses are mixed, rather than the targets (fastai's name)"""
        ...
    @property
    def is_mixed(self) -> bool:
        """Whether the current batch needs a mixed loss"""
        ...
    def sample(self, n: int, device: torch.device|None) -> torch.Tensor:
        """Sample mixing shares from the Beta distribution

        Args:
            n: how many numbers
            device: the device to draw them on; None: PyTorch's default

        Returns:
            numbers from 0 to 1
        """
        ...
    def mix_y(self, other: torch.Tensor) -> None:
        """Mix the targets, or keep the targets of the other items to mix the losses

        Args:
            other: for each item, the index of the item it is mixed with
        """
        ...
    def lf(self, pred: Any, *yb: Any, **kw: Any) -> torch.Tensor:
        """Returns `lam` of the loss for an item's own target plus `1-lam` of that for the other target (fastai's name)

        Args:
            pred: the predictions
            yb: the targets of the items themselves
            kw: passed on to the loss function

        Returns:
            the loss of the batch

        Raises:
            ValueError: a loss for each of … items is needed, but with reduction='none' the loss function returns …
        """
        ...
def _as_float(t: Any) -> Any: ...
