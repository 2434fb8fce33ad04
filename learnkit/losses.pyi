# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Loss functions that know what the model's outputs mean"""
import torch.nn as nn
from collections.abc import Iterator
from contextlib import contextmanager
from fastcore.basics import noop
from torch import Tensor
from typing import Any

__all__ = ['NoneReduce', 'BaseLoss', 'CrossEntropyLossFlat', 'LabelSmoothingCrossEntropy',
           'LabelSmoothingCrossEntropyFlat', 'FocalLoss', 'FocalLossFlat', 'BCEWithLogitsLossFlat',
           'BCELossFlat', 'MSELossFlat', 'L1LossFlat', 'loss_activation', 'loss_decodes', 'none_reduce']
_classwise: tuple[Any, ...]
_binary: tuple[Any, ...]
_pairwise: tuple[Any, ...]
def _plain(f: Any) -> Any:
    """`f` without its `partial`s"""
    ...
def _is_one(f: Any, kinds: Any) -> Any: ...
def _cls_axis(t: Any) -> Any:
    """Args:
        t: where torch wants the classes
    """
    ...
def _shape(t: Any) -> Any: ...
def _name(f: Any) -> Any: ...
def _joined(a: Any, b: Any) -> Any:
    """Is one of the shapes `a` and `b` the other with axes joined?"""
    ...
def _check_classes(name: Any, pred: Any, targ: Any, axis: Any, loose: Any) -> None:
    """Can `targ` hold one class number for each item of `pred`, whose classes are along `axis`?"""
    ...
def _check_pairs(name: Any, pred: Any, targ: Any, axis: Any, loose: Any) -> None:
    """Does every number in `pred` have one partner in `targ`?"""
    ...
def _check_for(f: Any) -> Any: ...
def _tensors(pred: Any, targs: Any) -> Any: ...
def check_loss(loss_func: Any, pred: Any, *targs: Any) -> None:
    """Raise if the shapes or types of `pred` and `targs` cannot be what `loss_func` wants

    Args:
        loss_func: any loss function; unknown ones pass
        pred: what the model returned
        targs: the targets
    """
    ...
def loss_hint(loss_func: Any, pred: Any, *targs: Any) -> str:
    """What may be wrong, once `loss_func` has raised

    Args:
        loss_func: the loss function that failed
        pred: its predictions
        targs: its targets

    Returns:
        empty if there is nothing to add
    """
    ...
class BaseLoss(nn.Module):
    """A loss over the last axis of flattened predictions, with `activation` and `decodes`"""
    y_int: bool
    func: Any
    _check: Any
    axis: int
    flatten: bool
    floatify: bool
    is_2d: bool
    def __init__(
        self,
        loss_cls: Any,
        *args: Any,
        axis: int = -1,
        flatten: bool = True,
        floatify: bool = False,
        is_2d: bool = True,
        **kw: Any,
    ) -> None:
        """A loss over the last axis of flattened predictions, with `activation` and `decodes`

        Args:
            loss_cls: class of the loss, called with `*args, **kw`; or the loss itself, if it is a module
            axis: axis of the predictions that holds the classes
            flatten: join all other axes into one?
            floatify: make the targets floats?
            is_2d: keep the axis of the classes apart when flattening?
        """
        ...
    @property
    def reduction(self) -> Any: ...
    @reduction.setter
    def reduction(self, v: Any) -> None: ...
    def forward(self, pred: Tensor, targ: Tensor, **kw: Any) -> Tensor:
        """The loss of `pred` against `targ`, both flattened"""
        ...
    def activation(self, x: Any) -> Any:
        """Model outputs to predictions"""
        ...
    def decodes(self, x: Any) -> Any:
        """Predictions to answers"""
        ...
    def check(self, pred: Any, targ: Any) -> None:
        """Raise if shapes or types cannot be right; looks at no value"""
        ...
    def prepare(self, pred: Any, targ: Any) -> tuple[Any, ...]:
        """Classes last, other axes joined, targets of the right type"""
        ...
class _Classes:
    """What outputs over classes mean"""
    y_int: bool
    axis: int
    def activation(self, x: Any) -> Any:
        """Logits to probabilities"""
        ...
    def decodes(self, x: Any) -> Any:
        """Most likely class"""
        ...
class CrossEntropyLossFlat(_Classes, BaseLoss):
    """`nn.CrossEntropyLoss` along any `axis`; softmax gives the probabilities and argmax the class"""
    loss_cls: Any
    def __init__(self, *args: Any, axis: int = -1, **kw: Any) -> None: ...
class LabelSmoothingCrossEntropy(_Classes, nn.CrossEntropyLoss):
    """Cross entropy against targets of which `eps` is spread evenly over the classes"""
    eps: float
    def __init__(self, eps: float = 0.1, weight: Tensor|None = None, reduction: str = 'mean', **kw: Any) -> None:
        """Cross entropy against targets of which `eps` is spread evenly over the classes

        Args:
            eps: share of the target that is spread
            weight: weight of each class
        """
        ...
class LabelSmoothingCrossEntropyFlat(CrossEntropyLossFlat):
    """`LabelSmoothingCrossEntropy` along any `axis`"""
    loss_cls: Any
class FocalLoss(_Classes, nn.CrossEntropyLoss):
    """Cross entropy times `(1-p)**gamma`, where `p` is the probability of the right class"""
    gamma: float
    def __init__(
        self,
        gamma: float = 2.0,
        weight: Tensor|None = None,
        reduction: str = 'mean',
        ignore_index: int = -100,
    ) -> None:
        """Cross entropy times `(1-p)**gamma`, where `p` is the probability of the right class

        Args:
            gamma: how strongly easy items are played down; 0 is cross entropy
            weight: weight of each class
        """
        ...
    def forward(self, pred: Tensor, targ: Tensor) -> Tensor:
        """The loss of logits `pred`, with the classes on axis 1, against class numbers `targ`"""
        ...
class FocalLossFlat(CrossEntropyLossFlat):
    """`FocalLoss` along any `axis`"""
    loss_cls: Any
class BCEWithLogitsLossFlat(BaseLoss):
    """`nn.BCEWithLogitsLoss`; sigmoid gives the probabilities, which mean yes above `thresh`"""
    thresh: float
    def __init__(self, *args: Any, axis: int = -1, floatify: bool = True, thresh: float = 0.5, **kw: Any) -> None:
        """`nn.BCEWithLogitsLoss`; sigmoid gives the probabilities, which mean yes above `thresh`

        Args:
            axis: axis of the classes, for `weight` and `pos_weight`
            floatify: make the targets floats?
            thresh: a probability above it is decoded as `True`
        """
        ...
    def activation(self, x: Any) -> Any:
        """Logits to probabilities"""
        ...
    def decodes(self, x: Any) -> Any:
        """Which are likely?"""
        ...
class _FloatLoss(BaseLoss):
    """A loss that compares number by number"""
    def __init__(self, *args: Any, axis: int = -1, floatify: bool = True, **kw: Any) -> None: ...
class BCELossFlat(_FloatLoss):
    """`nn.BCELoss`, flattened, for outputs that are probabilities already"""
    loss_cls: Any
class MSELossFlat(_FloatLoss):
    """`nn.MSELoss`, flattened"""
    loss_cls: Any
class L1LossFlat(_FloatLoss):
    """`nn.L1Loss`, flattened"""
    loss_cls: Any
def loss_activation(loss_func: Any) -> Any:
    """The function from model outputs to predictions: the loss's own `activation`, else nothing changes"""
    ...
def loss_decodes(loss_func: Any, act: Any = noop) -> Any:
    """The function from predictions to answers: the loss's own `decodes`, or what fits torch's loss

    Args:
        loss_func: any loss function
        act: activation that the predictions went through, if it is not the loss's own
    """
    ...
def _takes_reduction(f: Any) -> Any:
    """Can `f` be called with `reduction='none'`?"""
    ...
@contextmanager
def none_reduce(loss_func: Any) -> Iterator[Any]:
    """Within the block, `loss_func` gives one loss for each item

    Args:
        loss_func: with an attribute or an argument `reduction`
    """
    ...
NoneReduce = none_reduce
