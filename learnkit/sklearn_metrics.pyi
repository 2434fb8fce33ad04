# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""F1, precision, recall, ROC AUC and any other function of scikit-learn as a metric"""
from collections.abc import Callable
from .accum_metric import AccumMetric
from typing import Any

__all__ = ['skm_to_fastai', 'skm_to_learnkit', 'Precision', 'Recall', 'F1Score', 'F1ScoreMulti', 'RocAuc',
           'RocAucBinary']
_words: dict[Any, Any]
def skm_to_learnkit(
    func: Callable[..., Any],
    is_class: bool = True,
    thresh: float|None = None,
    axis: int = -1,
    activation: str|None = None,
    **kw: Any,
) -> AccumMetric:
    """Make a metric of a function of scikit-learn

    Args:
        func: function of scikit-learn, `func(y_true, y_pred, **kw)`
        is_class: does it want classes?
        thresh: probability from which a class counts as present
        axis: axis of the classes in the predictions
        activation: as in `AccumMetric`; None: a sigmoid if there is a `thresh`
        kw: more arguments of `func`

    Raises:
        ValueError: `…` must be … or
    """
    ...
skm_to_fastai = skm_to_learnkit
def sklearn_metric(name: str, **kw: Any) -> AccumMetric:
    """Make a metric of the function of scikit-learn called `name`, which is imported only now

    Args:
        name: a function of `sklearn.metrics`
        kw: arguments of `skm_to_learnkit` and of the function
    """
    ...
def as_factory(f: Callable[..., Any], doc: str|None = None) -> Callable[..., Any]:
    """Let `f` be given as the metric itself: it is called when a Learner is made

    Args:
        f: makes a metric
        doc: its docstring; None: it has one
    """
    ...
def Precision(axis: int = -1, average: str|None = 'binary', **kw: Any) -> AccumMetric:
    """Precision of the best classes

    Args:
        axis: axis of the classes in the predictions
        average: for more than two classes: 'macro', 'micro' or 'weighted'
        kw: more arguments of `sklearn.metrics.precision_score`
    """
    ...
def Recall(axis: int = -1, average: str|None = 'binary', **kw: Any) -> AccumMetric:
    """Recall of the best classes

    Args:
        axis: axis of the classes in the predictions
        average: for more than two classes: 'macro', 'micro' or 'weighted'
        kw: more arguments of `sklearn.metrics.recall_score`
    """
    ...
def F1Score(axis: int = -1, average: str|None = 'binary', **kw: Any) -> AccumMetric:
    """F1 score of the best classes

    Args:
        axis: axis of the classes in the predictions
        average: for more than two classes: 'macro', 'micro' or 'weighted'
        kw: more arguments of `sklearn.metrics.f1_score`
    """
    ...
def F1ScoreMulti(thresh: float|None = 0.5, sigmoid: bool = True, average: str|None = 'macro', **kw: Any) -> AccumMetric:
    """F1 score of several labels for each item

    Args:
        thresh: probability from which a label counts as present
        sigmoid: apply a sigmoid to the outputs first?
        average: 'macro', 'micro', 'weighted' or 'samples'
        kw: more arguments of `sklearn.metrics.f1_score`
    """
    ...
def RocAuc(axis: int = -1, average: str|None = 'macro', multi_class: str = 'ovr', **kw: Any) -> AccumMetric:
    """Area under the ROC curve (ROC AUC) for three or more classes

    Args:
        axis: axis of the classes in the predictions
        average: 'macro' or 'weighted'
        multi_class: 'ovr', one class against the rest, or 'ovo', one against one
        kw: more arguments of `sklearn.metrics.roc_auc_score`
    """
    ...
def RocAucBinary(axis: int = -1, **kw: Any) -> AccumMetric:
    """Area under the ROC curve (ROC AUC) for two classes

    Args:
        axis: axis of the two classes in the predictions
        kw: more arguments of `sklearn.metrics.roc_auc_score`
    """
    ...
