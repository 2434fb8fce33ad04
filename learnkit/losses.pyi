# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Cross entropy, label smoothing, focal loss, binary cross entropy, MSE and L1, with activation and decoding"""
import torch.nn as nn
from .base_loss import BaseLoss
from torch import Tensor
from typing import Any

__all__ = ['CrossEntropyLossFlat', 'LabelSmoothingCrossEntropy', 'LabelSmoothingCrossEntropyFlat', 'FocalLoss',
           'FocalLossFlat', 'BCEWithLogitsLossFlat', 'MSELossFlat', 'L1LossFlat', 'BCELossFlat']
class _Classes:
    """Activation and decoding of outputs over classes"""
    y_int: bool
    axis: int
    def activation(self, x: Tensor) -> Tensor:
        """Turns logits into probabilities"""
        ...
    def decodes(self, x: Tensor) -> Tensor:
        """Returns the most likely class"""
        ...
class CrossEntropyLossFlat(_Classes, BaseLoss):
    """`nn.CrossEntropyLoss` along any `axis`; softmax gives the probabilities and argmax the class"""
    loss_cls: Any
    def __init__(self, *args: Any, axis: int = -1, **kw: Any) -> None:
        """`nn.CrossEntropyLoss` along any `axis`; softmax gives the probabilities and argmax the class

        Args:
            args: Positional arguments of the loss inside
            axis: Axis of the predictions that holds the classes
            kw: Keyword arguments of the loss inside (`weight`, `ignore_index`, ...) and of `BaseLoss`
        """
        ...
class LabelSmoothingCrossEntropy(_Classes, nn.CrossEntropyLoss):
    """Cross entropy with label smoothing: `eps` of the target is spread evenly over the classes (Szegedy et al., 2016)"""
    eps: float
    def __init__(self, eps: float = 0.1, weight: Tensor|None = None, reduction: str = 'mean', **kw: Any) -> None:
        """Cross entropy with label smoothing: `eps` of the target is spread evenly over the classes (Szegedy et al., 2016)

        Args:
            eps: Share of the target that is spread
            weight: Weight of each class
            reduction: 'mean', 'sum' or 'none'
            kw: What else `nn.CrossEntropyLoss` takes

        Raises:
            ValueError: `eps` must be a fraction
        """
        ...
class LabelSmoothingCrossEntropyFlat(CrossEntropyLossFlat):
    """`LabelSmoothingCrossEntropy` along any `axis`"""
class FocalLoss(_Classes, nn.CrossEntropyLoss):
    """Focal loss: cross entropy times `(1-p)**gamma`, `p` the probability of the right class (Lin et al., 2017)"""
    gamma: float
    def __init__(
        self,
        gamma: float = 2.0,
        weight: Tensor|None = None,
        reduction: str = 'mean',
        ignore_index: int = -100,
    ) -> None:
        """Focal loss: cross entropy times `(1-p)**gamma`, `p` the probability of the right class (Lin et al., 2017)

        Args:
            gamma: How strongly easy items are played down; 0 is cross entropy
            weight: Weight of each class
            reduction: 'mean', 'sum' or 'none'
            ignore_index: Targets with this class number do not count

        Raises:
            ValueError: `gamma` must be 0 or more, not …: below 0 easy items would weigh more
        """
        ...
    def forward(self, pred: Tensor, targ: Tensor) -> Tensor:
        """Returns the loss of logits `pred`, with the classes on axis 1, against class numbers `targ`

        Args:
            pred: logits
            targ: class numbers
        """
        ...
class FocalLossFlat(CrossEntropyLossFlat):
    """`FocalLoss` along any `axis`"""
class BCEWithLogitsLossFlat(BaseLoss):
    """`nn.BCEWithLogitsLoss`, flattened; sigmoid gives the probabilities, which mean yes above `thresh`"""
    thresh: Any
    def __init__(self, *args: Any, axis: int = -1, floatify: bool = True, thresh: float = 0.5, **kw: Any) -> None:
        """`nn.BCEWithLogitsLoss`, flattened; sigmoid gives the probabilities, which mean yes above `thresh`

        Args:
            args: Positional arguments of `nn.BCEWithLogitsLoss`
            axis: Axis of the classes, for `weight` and `pos_weight`
            floatify: Convert the targets to floats?
            thresh: A probability above it is decoded as `True`
            kw: Keyword arguments of `nn.BCEWithLogitsLoss` and of `BaseLoss`

        Raises:
            ValueError: `thresh` must be a probability
        """
        ...
    def activation(self, x: Tensor) -> Tensor:
        """Turns logits into probabilities

        Args:
            x: model outputs
        """
        ...
    def decodes(self, x: Tensor) -> Tensor:
        """Returns which probabilities are above `thresh`

        Args:
            x: predictions
        """
        ...
class _FloatLoss(BaseLoss):
    """A loss that compares number by number"""
    def __init__(self, *args: Any, axis: int = -1, floatify: bool = True, **kw: Any) -> None:
        """A loss that compares number by number

        Args:
            args: Positional arguments of the loss inside
            axis: Axis of the predictions that comes last
            floatify: Convert the targets to floats?
            kw: Keyword arguments of the loss inside and of `BaseLoss`
        """
        ...
class MSELossFlat(_FloatLoss):
    """Mean squared error, `nn.MSELoss`, flattened"""
    loss_cls: Any
class L1LossFlat(_FloatLoss):
    """Mean absolute error, `nn.L1Loss`, flattened"""
    loss_cls: Any
class BCELossFlat(_FloatLoss):
    """Binary cross entropy of probabilities, `nn.BCELoss`, flattened"""
    loss_cls: Any
