# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Numbers for people: the usual ones, those that need a whole epoch, and those of other libraries"""
from .averages import AvgLoss, AvgMetric, AvgSmoothLoss, MeanMetric, Metric, Scalars
from torch import Tensor
from typing import Any

__all__ = ['perplexity', 'skm_to_fastai', 'AccumMetric', 'ValueMetric', 'LossMetric', 'accuracy', 'error_rate',
           'top_k_accuracy', 'accuracy_multi', 'mse', 'mae', 'rmse', 'msle', 'exp_rmspe', 'Perplexity',
           'skm_to_learnkit', 'Precision', 'Recall', 'F1Score', 'F1ScoreMulti', 'RocAuc', 'RocAucBinary',
           'TorchMetric', 'mk_metric', 'Metric', 'Scalars', 'AvgMetric', 'AvgLoss', 'AvgSmoothLoss',
           'MeanMetric']
class AccumMetric(Metric):
    """`func` of all predictions and targets of an epoch"""
    room: Any
    saves: tuple[Any, ...]
    _name: str|None
    kw: Any
    func: Any
    dim_argmax: int|None
    activation: str
    thresh: float|None
    to_np: bool
    invert_arg: bool
    flatten: bool
    preds: list[Any]
    targs: list[Any]
    waiting: list[Any]
    held: int
    def __init__(
        self,
        func: Any,
        dim_argmax: int|None = None,
        activation: str = 'no',
        thresh: float|None = None,
        to_np: bool = False,
        invert_arg: bool = False,
        flatten: bool = True,
        name: str|None = None,
        **kw: Any,
    ) -> None:
        """`func` of all predictions and targets of an epoch

        Args:
            func: called once as `func(preds, targs, **kw)`
            dim_argmax: axis over which to take the best class (or the softmax)
            activation: 'no', 'softmax', 'sigmoid' or 'binarysoftmax'
            thresh: make predictions `True` from this value on
            to_np: give `func` numpy arrays?
            invert_arg: call `func(targs, preds, **kw)`?
            flatten: make predictions and targets one-dimensional?
            name: column in the record; the function's name if not given
        """
        ...
    def settle(self) -> None: ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    def _result(self, preds: Any, targs: Any) -> Any: ...
    @property
    def name(self) -> str: ...
    def prepare(self, pred: Any) -> Any:
        """What `func` gets for the model output `pred`"""
        ...
    def accum_values(self, preds: Any, targs: Any, learn: Any = None) -> None:
        """Keep `preds`, which are ready, and `targs`"""
        ...
    def to_cpu(self) -> None:
        """Bring over what is on the device"""
        ...
    def __call__(self, preds: Any, targs: Any) -> Any:
        """`func` of `preds`, used as they are, and `targs`"""
        ...
def _best_class(pred: Any, axis: Any) -> Any: ...
class ValueMetric(Metric):
    """The value of `func()` at the end of an epoch"""
    func: Any
    metric_name: str|None
    def __init__(self, func: Any, metric_name: str|None = None) -> None:
        """The value of `func()` at the end of an epoch

        Args:
            func: called without arguments
            metric_name: column in the record; the function's name if not given
        """
        ...
    def accumulate(self, learn: Any) -> None:
        """Nothing to do"""
        ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
class LossMetric(AvgMetric):
    """The mean of the attribute `attr` that the loss function sets in each batch"""
    attr: str
    def __init__(self, attr: str, nm: str|None = None) -> None:
        """The mean of the attribute `attr` that the loss function sets in each batch

        Args:
            attr: attribute of `learn.loss_func`, a mean over the batch
            nm: column in the record; `attr` if not given
        """
        ...
    def accumulate(self, learn: Any) -> None: ...
def accuracy(inp: Tensor, targ: Tensor, axis: int = -1) -> Tensor:
    """Share of items whose best class, along `axis` of `inp`, is `targ`"""
    ...
def error_rate(inp: Tensor, targ: Tensor, axis: int = -1) -> Tensor:
    """1 - `accuracy`"""
    ...
def top_k_accuracy(inp: Tensor, targ: Tensor, k: int = 5, axis: int = -1) -> Tensor:
    """Share of items with `targ` among the `k` best classes along `axis` of `inp`"""
    ...
def accuracy_multi(inp: Tensor, targ: Tensor, thresh: float = 0.5, sigmoid: bool = True) -> Tensor:
    """Share of right answers if each output, after a `sigmoid`, means yes above `thresh`"""
    ...
def mse(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean squared error"""
    ...
def mae(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean absolute error"""
    ...
def _sq_err(inp: Any, targ: Any) -> Any: ...
def rmse(inp: Tensor, targ: Tensor) -> Tensor:
    """Root of the mean squared error"""
    ...
def msle(inp: Tensor, targ: Tensor) -> Tensor:
    """Mean squared error of the logarithms of 1 + `inp` and 1 + `targ`"""
    ...
def _sq_pct_err(inp: Any, targ: Any) -> Any: ...
def exp_rmspe(inp: Tensor, targ: Tensor) -> Tensor:
    """Root of the mean squared relative error of `exp(inp)`"""
    ...
class Perplexity(AvgLoss):
    """`exp` of the mean loss, for language models trained with cross entropy"""
    def __init__(self, name: str = 'perplexity') -> None: ...
    @property
    def value(self) -> Any: ...
perplexity = Perplexity
def skm_to_learnkit(
    func: Any,
    is_class: bool = True,
    thresh: float|None = None,
    axis: int = -1,
    activation: str|None = None,
    **kw: Any,
) -> AccumMetric:
    """A metric from a function of scikit-learn

    Args:
        func: function of scikit-learn, `func(y_true, y_pred, **kw)`
        is_class: does it want classes?
        thresh: probability from which a class counts as present
        axis: axis of the classes in the predictions
        activation: as in `AccumMetric`; if not given, a sigmoid where there is a `thresh`
    """
    ...
skm_to_fastai = skm_to_learnkit
def _skm(name: Any, **kw: Any) -> Any: ...
def _maker(f: Any) -> Any:
    """So that `metrics=F1Score` will do for `metrics=F1Score()`"""
    ...
def Precision(axis: int = -1, average: str = 'binary', **kw: Any) -> Any:
    """`precision_score` of the best classes; for more than two, `average` is 'macro', 'micro' or 'weighted'"""
    ...
def Recall(axis: int = -1, average: str = 'binary', **kw: Any) -> Any:
    """`recall_score` of the best classes"""
    ...
def F1Score(axis: int = -1, average: str = 'binary', **kw: Any) -> Any:
    """`f1_score` of the best classes"""
    ...
def F1ScoreMulti(thresh: float = 0.5, sigmoid: bool = True, average: str = 'macro', **kw: Any) -> Any:
    """`f1_score` of outputs that mean yes from `thresh` on"""
    ...
def RocAuc(axis: int = -1, average: str = 'macro', multi_class: str = 'ovr', **kw: Any) -> Any:
    """`roc_auc_score` of the probabilities of three or more classes"""
    ...
def RocAucBinary(axis: int = -1, **kw: Any) -> Any:
    """`roc_auc_score` of the probability of the second of two classes"""
    ...
class TorchMetric(Metric):
    """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`"""
    metric: Any
    _name: str|None
    activation: Any
    device: Any
    n: Any
    def __init__(self, metric: Any, name: str|None = None, activation: Any = None) -> None:
        """A metric from an object with `update(pred, targ)`, `compute()` and `reset()`

        Args:
            metric: for instance from torchmetrics
            name: column in the record; the class in `snake_case` if not given
            activation: function for the model's outputs, such as `torch.sigmoid`
        """
        ...
    def reset(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """What was gathered so far: the states that torchmetrics calls by these names"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on with what `state_dict` gave"""
        ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def name(self) -> str: ...
def _mk_skm(m: Any, f: Any) -> Any: ...
def mk_metric(m: Any) -> Any:
    """A metric for the Learner from `m`

    Args:
        m: function, `Metric`, torchmetrics metric, function of scikit-learn, or the class of one
    """
    ...
