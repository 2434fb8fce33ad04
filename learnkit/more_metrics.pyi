# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The rest of scikit-learn's scores by fastai's names, correlations, and losses that consist of parts"""
from collections.abc import Callable
from .accum_metric import AccumMetric
from .metric import LossMetric
from typing import Any

__all__ = ['BalancedAccuracy', 'CohenKappa', 'HammingLoss', 'Jaccard', 'MatthewsCorrCoef', 'APScoreBinary',
           'PrecisionMulti', 'RecallMulti', 'JaccardMulti', 'HammingLossMulti', 'APScoreMulti', 'RocAucMulti',
           'R2Score', 'ExplainedVariance', 'PearsonCorrCoef', 'SpearmanCorrCoef', 'FBeta', 'FBetaMulti', 'LossMetrics']
def of_classes(func: str, **defaults: Any) -> Callable[..., Any]:
    """Return a function that makes a metric: `func` of the best classes along `axis`

    Args:
        func: the name of a function of `sklearn.metrics`
        defaults: its arguments, if no others are given
    """
    ...
BalancedAccuracy: Any
CohenKappa: Any
HammingLoss: Any
Jaccard: Any
MatthewsCorrCoef: Any
APScoreBinary: Any
def FBeta(beta: float, **kw: Any) -> AccumMetric:
    """F score of the best classes, in which recall counts `beta` times as much as precision

    Args:
        beta: how much recall counts more than precision
        kw: `axis`, and more arguments of `sklearn.metrics.fbeta_score`
    """
    ...
def FBetaMulti(beta: float, **kw: Any) -> AccumMetric:
    """F score of several labels for each item, in which recall counts `beta` times as much as precision

    Args:
        beta: how much recall counts more than precision
        kw: `thresh`, `sigmoid`, and more arguments of `sklearn.metrics.fbeta_score`
    """
    ...
def of_labels(func: str, thresh: float|None = 0.5, **defaults: Any) -> Callable[..., Any]:
    """Return a function that makes a metric: `func` of the labels whose probability is `thresh` or more

    Args:
        func: the name of a function of `sklearn.metrics`
        thresh: probability from which a label counts as present; None: `func` wants the probabilities
        defaults: the function's arguments, if no others are given
    """
    ...
PrecisionMulti: Any
RecallMulti: Any
JaccardMulti: Any
HammingLossMulti: Any
APScoreMulti: Any
RocAucMulti: Any
def of_numbers(func: str) -> Callable[..., Any]:
    """Return a function that makes a metric: `func` of the predictions as they are

    Args:
        func: the name of a function of `sklearn.metrics`
    """
    ...
R2Score: Any
ExplainedVariance: Any
def of_scipy(func: str) -> Callable[..., Any]:
    """Return a function that makes a metric: the correlation of predictions and targets

    Args:
        func: the name of a correlation in `scipy.stats`, which returns it with a p-value
    """
    ...
PearsonCorrCoef: Any
SpearmanCorrCoef: Any
def LossMetrics(attrs: str|list[Any], nms: str|list[Any]|None = None) -> list[LossMetric]:
    """Return a `LossMetric` for each attribute that the loss function sets in a batch

    Args:
        attrs: attributes of the loss function: a list, or text with commas
        nms: their columns in the history; None: the attributes

    Raises:
        ValueError: … names for … attributes: give one for each
    """
    ...
