# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Make a metric of a function, a metric of torchmetrics or torcheval, or a function of scikit-learn"""
from collections.abc import Callable
from .metric import Metric
from typing import Any

__all__ = ['TorchMetric', 'mk_metric']
class TorchMetric(Metric):
    """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`, as in torchmetrics and torcheval"""
    metric: Any
    _name: str|None
    activation: Any
    device: Any
    n: Any
    def __init__(self, metric: Any, name: str|None = None, activation: Callable[..., Any]|None = None) -> None:
        """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`, as in torchmetrics and torcheval

        Args:
            metric: for instance `torchmetrics.Accuracy('multiclass', num_classes=10)`
            name: column in the history; None: the class in `snake_case`
            activation: function for the model's outputs, such as `torch.sigmoid`
        """
        ...
    def reset(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return what was accumulated so far: torchmetrics lists the names of its states in `_defaults`"""
        ...
    def load_state_dict(self, state: Any) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
def _mk_sklearn(m: Any, f: Any) -> Any: ...
def mk_metric(m: Any) -> Any:
    """Make a metric for the Learner; raises TypeError for what cannot be one

    Args:
        m: function of (pred, *targets), `Metric`, torchmetrics metric, function of scikit-learn, or the class of one

    Returns:
        a `Metric`, or an object with the same methods
    """
    ...
