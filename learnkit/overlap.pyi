# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Dice and Jaccard: how far predicted and true masks overlap, as metrics and as a loss"""
from .metric import Metric
from torch import Tensor
from typing import Any

__all__ = ['Overlap', 'Dice', 'JaccardCoeff', 'DiceMulti', 'JaccardCoeffMulti', 'foreground_acc', 'DiceLoss']
class Overlap(Metric):
    """Base class: counts how many pixels of each class were taken for which; a subclass defines the property `value`"""
    axis: int
    ignore_index: int
    counts: Any
    def __init__(self, axis: int = 1, ignore_index: int = -100) -> None:
        """Base class: counts how many pixels of each class were taken for which; a subclass defines the property `value`

        Args:
            axis: the axis of the classes in the predictions
            ignore_index: a target that does not count
        """
        ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    def areas(self) -> tuple[Tensor, Tensor]|None:
        """Return for each class in how many pixels it is right, and the sum of its predicted and its true area"""
        ...
class Dice(Overlap):
    """Dice coefficient of the second of two classes: twice the overlap over the sum of both areas"""
    def accumulate(self, learn: Any) -> None: ...
    def score(self, inter: Tensor, total: Tensor) -> Tensor:
        """Return the coefficient

        Args:
            inter: the overlap
            total: the sum of both areas
        """
        ...
    @property
    def value(self) -> float|None: ...
class JaccardCoeff(Dice):
    """Jaccard coefficient (IoU) of the second of two classes: the overlap over the area of both together"""
    def score(self, inter: Any, total: Any) -> Any: ...
class DiceMulti(Dice):
    """Mean Dice coefficient of the classes that occur"""
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> float|None: ...
class JaccardCoeffMulti(DiceMulti):
    """Mean Jaccard coefficient (IoU) of the classes that occur"""
    score: Any
def foreground_acc(inp: Tensor, targ: Tensor, bkg_idx: int = 0, axis: int = 1) -> Tensor:
    """Accuracy of the pixels that are not background; nan if all of them are

    Args:
        inp: one output for each class
        targ: the right classes
        bkg_idx: the class of the background, which does not count
        axis: the axis of the classes in `inp`
    """
    ...
class DiceLoss:
    """Dice loss for segmentation: 1 - the Dice coefficient of the probabilities, for each item and class"""
    axis: int
    smooth: float
    reduction: str
    square_in_union: bool
    def __init__(
        self,
        axis: int = 1,
        smooth: float = 1e-06,
        reduction: str = 'sum',
        square_in_union: bool = False,
    ) -> None:
        """Dice loss for segmentation: 1 - the Dice coefficient of the probabilities, for each item and class

        Args:
            axis: the axis of the classes in the predictions
            smooth: added above and below the line: a class that does not occur has loss 0
            reduction: 'sum', 'mean' or 'none': over items and classes
            square_in_union: square the probabilities in the area? The gradients are steeper then

        Raises:
            ValueError: `reduction` must be one of
        """
        ...
    def __call__(self, pred: Tensor, targ: Tensor) -> Tensor:
        """Return the loss of logits `pred` against class numbers `targ`

        Args:
            pred: logits
            targ: class numbers

        Raises:
            ValueError: predictions … and targets … do not match: without the classes (axis …), their shapes must be the …
        """
        ...
    def _one_hot(self, targ: Any, n: Any) -> Any: ...
    def activation(self, x: Tensor) -> Tensor:
        """Turn logits into probabilities

        Args:
            x: logits
        """
        ...
    def decodes(self, x: Tensor) -> Tensor:
        """Return the most likely class

        Args:
            x: logits, or probabilities
        """
        ...
