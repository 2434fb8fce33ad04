# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Train on mixtures of items: whole pictures (MixUp) or pieces of them (CutMix)"""
import torch
from functools import partial
from ..callback import Callback
from typing import Any

__all__ = ['MixHandler', 'MixUp', 'CutMix']
def blend(t: Any, other: torch.Tensor, lam: torch.Tensor) -> Any:
    """`lam` of each item and `1-lam` of its other

    Args:
        t: the items, along the first dimension; what is no tensor stays as it is
        other: for each item, the number of the one it is mixed with
        lam: its own share, between 0 and 1: one number for each item, or one for all
    """
    ...
def reduce_loss(loss: torch.Tensor, reduction: str = 'mean') -> torch.Tensor:
    """The losses of a batch as one number

    Args:
        loss: the losses of the items
        reduction: 'mean', 'sum', or anything else for none
    """
    ...
def _of_loss(f: Any, k: Any, default: Any = None) -> Any:
    """Attribute `k` of a loss function, or its argument where `partial` has set it"""
    ...
class MixedLoss(partial[Any]):
    """The loss function that it was made of, but for batches that `mixer` has mixed"""
    mixer: MixHandler
    def __call__(self, pred: Any, *yb: Any, **kw: Any) -> Any: ...
class MixHandler(Callback):
    """Mixes batches of training, and the loss to go with them; subclasses say how"""
    run_valid: bool
    modes: tuple[Any, ...]
    lam: torch.Tensor|None
    """the share of the items themselves; None while the batch is not mixed"""
    yb1: tuple[Any, ...]|None
    """the targets of the others"""
    part: slice
    """the items that `MicroBatch` has at hand, of those that were mixed"""
    mixed: MixedLoss|None
    old_lf: Any
    each: Any
    alpha: float
    distrib: Any
    y_int: Any
    def __init__(self, alpha: float = 0.5) -> None:
        """Mixes batches of training, and the loss to go with them; subclasses say how

        Args:
            alpha: both parameters of the Beta distribution of `lam`: near 0 items are hardly mixed, at 1 every share is as likely
        """
        ...
    def wrap(self) -> None:
        """Have the loss function mixed from now on, unless it is already"""
        ...
    def unmix(self) -> None: ...
    def before_micro_batch(self, items: Any) -> None: ...
    after_batch = unmix
    def before_train(self) -> None: ...
    def cleanup(self) -> None: ...
    @property
    def stack_y(self) -> bool:
        """Are the losses mixed, rather than the targets?"""
        ...
    @property
    def is_mixed(self) -> bool:
        """Is the loss of the current batch one to be mixed?"""
        ...
    def sample(self, n: int, device: torch.device) -> torch.Tensor:
        """Shares from the Beta distribution

        Args:
            n: how many
            device: where they are drawn, and stay
        """
        ...
    def mix_y(self, other: torch.Tensor) -> None:
        """Remember the others' targets, or mix the targets with them if that is how it is done

        Args:
            other: for each item, the number of the one it is mixed with
        """
        ...
    def lf(self, pred: Any, *yb: Any, **kw: Any) -> torch.Tensor:
        """`lam` of the loss against the items' own targets and `1-lam` of that against the others'"""
        ...
def _as_float(t: Any) -> Any: ...
def _need_floats(xb: Any, who: Any) -> None: ...
class MixUp(MixHandler):
    """Blends each item with another one (Zhang et al., 2017, https://arxiv.org/abs/1710.09412)"""
    def __init__(self, alpha: float = 0.4) -> None:
        """Blends each item with another one (Zhang et al., 2017, https://arxiv.org/abs/1710.09412)

        Args:
            alpha: both parameters of the Beta distribution of `lam`
        """
        ...
    def before_batch(self) -> None: ...
class CutMix(MixHandler):
    """Pastes a box of another picture into each (Yun et al., 2019, https://arxiv.org/abs/1905.04899)"""
    def __init__(self, alpha: float = 1.0) -> None:
        """Pastes a box of another picture into each (Yun et al., 2019, https://arxiv.org/abs/1905.04899)

        Args:
            alpha: both parameters of the Beta distribution of `lam`
        """
        ...
    def before_batch(self) -> None: ...
    def size(self, xb: tuple[Any, ...]) -> tuple[Any, ...]:
        """Height and width of the pictures"""
        ...
    def rand_bbox(self, W: int, H: int, lam: torch.Tensor) -> tuple[Any, ...]:
        """A box of `1-lam` of the picture's area around a random centre, cut off at the edges

        Args:
            W: width of the picture
            H: its height
            lam: the share that is not to be cut out, a tensor with one number

        Returns:
            left, top, right, bottom, as tensors
        """
        ...
