# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`LearnerClassifier` and `LearnerRegressor`: for cross-validation, grids and pipelines"""
import numpy as np
from collections.abc import Callable
from .._fastcore import BaseEstimator, ClassifierMixin, RegressorMixin
from ..callback import Callback
from ..duration import Time
from typing import Any, Self

__all__ = ['LearnerClassifier', 'LearnerRegressor']
class _Parameters(BaseEstimator):
    """An estimator that has the parameters of its factory, too"""
    make: Callable[..., Any]
    epochs: int|str|Time
    lr: float|slice|list[Any]|None
    train: Callable[..., Any]
    bs: int
    valid_pct: float
    random_state: Any
    verbose: bool
    def __init__(
        self,
        make: Callable[..., Any],
        epochs: int|str|Time = 10,
        lr: float|slice|list[Any]|None = None,
        *,
        train: Callable[..., Any] = ...,
        bs: int = 64,
        valid_pct: float = 0.0,
        random_state: Any = None,
        verbose: bool = False,
        **params: Any,
    ) -> None:
        """An estimator that has the parameters of its factory, too

        Args:
            make: (dls, **params) -> a new Learner
            epochs: how long to train: epochs, or an amount such as '2000ba'
            lr: learning rate; None: the Learner's
            train: (learn, epochs, lr) -> None: trains
            bs: items in a batch
            valid_pct: the fraction of the items to validate on, for early stopping; 0: none
            random_state: a seed gives the same weights each time; None: a seed from NumPy's generator
            verbose: show the rows of the history?
            params: of `make`; the others have its defaults

        Raises:
            TypeError: `make` has no parameter `…`: name it there, `def make(dls, …=…)`
            TypeError: `make` needs `…`: give it a default, or a value here
            TypeError: estimators have a `…`: rename the parameter of `make`
        """
        ...
    def _make_params(self) -> dict[Any, Any]:
        """The parameters of `make`, without the data: name -> value"""
        ...
    def _check_make(self, given: Any = ()) -> None: ...
    def get_params(self, deep: bool = True) -> dict[Any, Any]:
        """Return the parameters, with those of `make`: name -> value

        Args:
            deep: those of estimators among the parameters, too?
        """
        ...
class _SampleWeight(Callback):
    """Weighs the loss of each item by the last element of the batch"""
    weight: Any
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
class _Estimator(_Parameters):
    """What the classifier and the regressor share"""
    _checks: dict[Any, Any]
    """of the arrays, beside those that all have"""
    learn_: Any
    def _targets(self, y: Any) -> Any: ...
    def __sklearn_is_fitted__(self) -> Any: ...
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make a new Learner, `learn_`, and train it; returns the estimator itself

        Args:
            X: the items: an array, a list, a data frame
            y: their targets
            sample_weight: how much the loss of each item counts; None: all the same

        Raises:
            TypeError: `…` must be a function
            TypeError: `make` has no parameter `…`: name it there, `def make(dls, …=…)`
            TypeError: `make` needs `…`: give it a default, or a value here
            TypeError: estimators have a `…`: rename the parameter of `make`
            TypeError: `make` must return a Learner
        """
        ...
    def _dls(self, *ts: Any) -> Any: ...
    def _preds(self, X: Any, **kwargs: Any) -> Any:
        """What the network says of the items `X`"""
        ...
class LearnerClassifier(ClassifierMixin, _Estimator):
    """A classifier of scikit-learn that trains the Learner which `make` returns"""
    classes_: Any
    def _targets(self, y: Any) -> Any: ...
    def _scores(self, X: Any) -> Any: ...
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class: an array with a row for each item, in the order of `classes_`

        Args:
            X: the items

        Raises:
            ValueError: the network returned … for … items of … classes: let it have `len(dls.vocab)` outputs
            ValueError: what the network says is not probabilities, and its loss function has no `activation` that makes …
        """
        ...
    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each item

        Args:
            X: the items

        Raises:
            ValueError: the network returned … for … items of … classes: let it have `len(dls.vocab)` outputs
        """
        ...
class LearnerRegressor(RegressorMixin, _Estimator):
    """A regressor of scikit-learn that trains the Learner which `make` returns"""
    _shape: Any
    def __sklearn_tags__(self) -> Any: ...
    def _targets(self, y: Any) -> Any: ...
    def predict(self, X: Any) -> np.ndarray:
        """Return what is predicted for each item

        Args:
            X: the items
        """
        ...
