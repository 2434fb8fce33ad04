# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What the model gets wrong, and how badly"""
from collections.abc import Callable
from ..learner import Learner
from ..recorder import History
from torch import Tensor
from typing import Any, Self

__all__ = ['Interpretation', 'ClassificationInterpretation']
def _vocab_of(learn: Any, vocab: Any) -> Any:
    """The names of the classes: those of the last target, if there are names for several"""
    ...
class Interpretation:
    """Predictions, targets, answers and the loss of each item"""
    preds: Any
    targs: Any
    decoded: Any
    losses: Tensor
    inputs: Any
    vocab: list[Any]|None
    ignore_index: int
    def __init__(
        self,
        preds: Any,
        targs: Any,
        decoded: Any,
        losses: Tensor,
        inputs: Any = None,
        vocab: list[Any]|None = None,
        ignore_index: int = -100,
    ) -> None:
        """Predictions, targets, answers and the loss of each item

        Args:
            preds: predictions, after the activation
            targs: targets
            decoded: answers, such as the most likely class
            losses: the loss of each item
            inputs: inputs
            vocab: the names of the classes
            ignore_index: the class number of what is not to be counted
        """
        ...
    @classmethod
    def from_learner(
        cls,
        learn: Learner,
        ds_idx: int = 1,
        dl: Any = None,
        act: Callable[..., Any]|None = None,
        with_input: bool = False,
        vocab: list[Any]|None = None,
    ) -> Self:
        """Predict, and keep what comes of it

        Args:
            learn: its model, its loss function, its data
            ds_idx: which loader of `learn.dls`: 1 is the validation set
            dl: or this one
            act: from the model's outputs to predictions; None: the `activation` of the loss function
            with_input: keep the inputs, to look at them
            vocab: the names of the classes; None: those of `learn.dls`
        """
        ...
    def __len__(self) -> int: ...
    def __getitem__(self, idxs: int|list[Any]|Tensor) -> tuple[Any, ...]:
        """Inputs (None if they are not kept), predictions, targets, answers and losses of the items `idxs`"""
        ...
    def top_losses(self, k: int|None = None, largest: bool = True) -> tuple[Any, ...]:
        """The `k` largest losses, or smallest, and the numbers of their items

        Args:
            k: how many; None: all
            largest: the largest losses, or the smallest
        """
        ...
    def rows(self, idxs: int|list[Any]|Tensor) -> History:
        """A table of items: number, loss, target, answer, probability of the answer (its score, if the outputs are none), and the inputs if they are kept

        Args:
            idxs: the numbers of the items
        """
        ...
    def name(self, v: Any) -> str:
        """What stands for a target or answer in a table: the name of a class, or the value"""
        ...
    def plot_top_losses(
        self,
        k: int|list[Any],
        largest: bool = True,
        ncols: int = 5,
        figsize: tuple[Any, ...]|None = None,
    ) -> Any:
        """Draw the items with the largest losses, with prediction / target, loss / probability; a table if they are no pictures

        Args:
            k: how many, or their places in the list of all losses
            largest: the largest losses, or the smallest
            ncols: pictures in a row
            figsize: in inches
        """
        ...
def is_image(t: Any) -> bool:
    """Does the batch `t` look like pictures: (item, channel, row, column) with 1, 3 or 4 channels, or (item, row, column)?"""
    ...
def _picture(t: Any) -> Any:
    """One item as matplotlib wants it; what is not in 0…1 is stretched to it"""
    ...
def _short(v: Any) -> Any:
    """A value of one item, for a title or a table"""
    ...
def _at(b: Any, i: Any) -> Any: ...
def _by_name(inputs: Any) -> Any: ...
def _one_class_each(preds: Any, decoded: Any) -> Any: ...
class ClassificationInterpretation(Interpretation):
    """How often each class is taken for each other"""
    answers: Any
    truths: Any
    def __init__(
        self,
        preds: Tensor,
        targs: Tensor,
        decoded: Tensor,
        losses: Tensor,
        inputs: Any = None,
        vocab: list[Any]|None = None,
        ignore_index: int = -100,
    ) -> None: ...
    def _check(self) -> Any:
        """Answers and targets as vectors of class numbers"""
        ...
    def _n_classes(self) -> Any: ...
    def confusion_matrix(self) -> Any:
        """How often items of class `i` (row) were taken for class `j` (column), as a NumPy array"""
        ...
    def most_confused(self, min_val: int = 1) -> list[Any]:
        """The mistakes, most frequent first: (target, answer, how often)

        Args:
            min_val: leave out what happened less often
        """
        ...
    def plot_confusion_matrix(
        self,
        normalize: bool = False,
        title: str = 'Confusion matrix',
        cmap: str = 'Blues',
        norm_dec: int = 2,
        plot_txt: bool = True,
        figsize: tuple[Any, ...]|None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the confusion matrix; returns the matplotlib axes

        Args:
            normalize: shares of each row, instead of numbers
            cmap: matplotlib's name of the colours
            norm_dec: decimals of the shares
            plot_txt: write the numbers too
            figsize: in inches
            ax: matplotlib axes to draw on; new ones if None
        """
        ...
    def classification_report(self) -> History:
        """Precision, recall, f1 and support of each class, and their means"""
        ...
    def print_classification_report(self) -> None:
        """Print the report for each class"""
        ...
