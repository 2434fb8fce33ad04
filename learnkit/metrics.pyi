# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The usual metrics: accuracy, error rate, squared and absolute errors, perplexity"""
from .metric import AvgLoss
from torch import Tensor
from typing import Any

__all__ = ['perplexity', 'accuracy', 'error_rate', 'top_k_accuracy', 'accuracy_multi', 'mse', 'mae', 'rmse', 'msle',
           'exp_rmspe', 'Perplexity']
def _share(right: Any, targ: Any, ignore_index: Any) -> Any:
    """The share of targets for which `right` is true; of those that count"""
    ...
def accuracy(inp: Tensor, targ: Tensor, axis: int = -1, ignore_index: int = -100) -> Tensor:
    """Accuracy: the share of targets that are the best class

    Args:
        inp: one output for each class
        targ: the right classes
        axis: the axis of the classes in `inp`
        ignore_index: targets of this class do not count; as a metric, that of the loss function
    """
    ...
def error_rate(inp: Tensor, targ: Tensor, axis: int = -1, ignore_index: int = -100) -> Tensor:
    """1 - `accuracy`

    Args:
        inp: one output for each class
        targ: the right classes
        axis: the axis of the classes in `inp`
        ignore_index: targets of this class do not count; as a metric, that of the loss function
    """
    ...
def top_k_accuracy(inp: Tensor, targ: Tensor, k: int = 5, axis: int = -1, ignore_index: int = -100) -> Tensor:
    """Top-k accuracy: the share of targets among the `k` best classes; raises ValueError for a bad `k`

    Args:
        inp: one output for each class
        targ: the right classes
        k: how many of the best classes count
        axis: the axis of the classes in `inp`
        ignore_index: targets of this class do not count; as a metric, that of the loss function

    Raises:
        ValueError: `k` must be from 1 to …, the number of classes
    """
    ...
def accuracy_multi(inp: Tensor, targ: Tensor, thresh: float = 0.5, sigmoid: bool = True) -> Tensor:
    """Accuracy of several labels for each item: the share of right answers

    Args:
        inp: one output for each label
        targ: 1 where the label applies, else 0
        thresh: an output above it means yes
        sigmoid: apply a sigmoid to `inp` first?
    """
    ...
def mse(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean squared error

    Args:
        inp: predictions
        targ: targets, as many
    """
    ...
def mae(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean absolute error

    Args:
        inp: predictions
        targ: targets, as many
    """
    ...
def _sq_err(inp: Any, targ: Any) -> Any: ...
def rmse(inp: Tensor, targ: Tensor) -> Tensor:
    """Root mean squared error

    Args:
        inp: predictions
        targ: targets, as many
    """
    ...
def msle(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean squared logarithmic error: of log(1 + `inp`) and log(1 + `targ`)

    Args:
        inp: predictions, more than -1
        targ: targets, as many
    """
    ...
def _sq_pct_err(inp: Any, targ: Any) -> Any: ...
def exp_rmspe(inp: Tensor, targ: Tensor) -> Tensor:
    """Root mean squared percentage error of `exp(inp)`

    Args:
        inp: predicted logarithms
        targ: logarithms of the targets, as many
    """
    ...
class Perplexity(AvgLoss):
    """Perplexity: `exp` of the mean loss, for language models trained with cross entropy"""
    def __init__(self, name: str = 'perplexity') -> None:
        """Perplexity: `exp` of the mean loss, for language models trained with cross entropy

        Args:
            name: column in the history
        """
        ...
    @property
    def value(self) -> float|None: ...
perplexity = Perplexity
