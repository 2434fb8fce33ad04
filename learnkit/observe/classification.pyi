# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Confusion matrix, most confused classes, and precision, recall and F1 of each class"""
from ..history import History
from .interpretation import Interpretation
from torch import Tensor
from typing import Any

__all__ = ['ClassificationInterpretation']
class ClassificationInterpretation(Interpretation):
    """Interpret a classifier: how often each class was predicted for each other"""
    vocab: list[Any]
    """names of the classes"""
    pred_ids: Any
    targ_ids: Any
    def __init__(
        self,
        preds: Tensor,
        targs: Tensor,
        decoded: Tensor,
        losses: Tensor,
        inputs: Any = None,
        vocab: list[Any]|None = None,
        ignore_index: int = -100,
    ) -> None:
        """Interpret a classifier: how often each class was predicted for each other

        Args:
            preds: predictions, after the activation
            targs: targets, class numbers
            decoded: decoded predictions, class numbers
            losses: the loss of each item
            inputs: inputs; None: not kept
            vocab: names of the classes; None: their numbers
            ignore_index: class number that does not count, such as that of padding

        Raises:
            TypeError: ClassificationInterpretation needs one target and one prediction for each item, not a … and a …
            TypeError: the decoded predictions are …, not class numbers: use `Interpretation`, or a loss function for …
            TypeError: the targets must be class numbers, one for each of the predictions …, not …: for probabilities or …
            ValueError: `vocab` has … names, for the class numbers 0 to …, but there is a class number …
        """
        ...
    def _class_ids(self) -> Any:
        """Predictions and targets as vectors of class numbers; raises TypeError if they are anything else

        Raises:
            TypeError: ClassificationInterpretation needs one target and one prediction for each item, not a … and a …
            TypeError: the decoded predictions are …, not class numbers: use `Interpretation`, or a loss function for …
            TypeError: the targets must be class numbers, one for each of the predictions …, not …: for probabilities or …
        """
        ...
    def _n_classes(self) -> Any:
        """The number of classes: as many as the model has outputs, and as occur"""
        ...
    def confusion_matrix(self) -> Any:
        """Returns how often items of class `i` (row) were predicted as class `j` (column), as a NumPy array"""
        ...
    def most_confused(self, min_val: int = 1) -> list[tuple[Any, ...]]:
        """Returns the most frequent mistakes, in descending order: (target, prediction, count)

        Args:
            min_val: leave out pairs that occur less often
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
        """Plot the confusion matrix; returns the matplotlib axes

        Args:
            normalize: show shares of each row instead of counts
            title: title of the plot
            cmap: name of a matplotlib colour map
            norm_dec: decimals of the shares
            plot_txt: write the numbers into the cells
            figsize: width and height in inches; None: by the number of classes
            ax: matplotlib axes to draw on; None: new ones
        """
        ...
    def classification_report(self) -> History:
        """Returns precision, recall, F1 and support of each class, and their means, as a table"""
        ...
    def print_classification_report(self) -> None:
        """Print precision, recall, F1 and support of each class"""
        ...
