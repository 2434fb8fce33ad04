# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`AccumMetric`: collect the predictions and targets of an epoch, and call a function once"""
from collections.abc import Callable
from .metric import Metric
from torch import Tensor
from typing import Any

__all__ = ['ActivationType', 'AccumMetric']
class ActivationType:
    """The activations of an `AccumMetric`, to complete and not to misspell"""
    No: str
    Softmax: str
    Sigmoid: str
    BinarySoftmax: str
class AccumMetric(Metric):
    """`func` of all predictions and targets of an epoch"""
    room: Any
    ignore_index: Any
    _name: str|None
    kw: Any
    func: Callable[..., Any]
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
        func: Callable[..., Any],
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
            to_np: give `func` NumPy arrays?
            invert_arg: call `func(targs, preds, **kw)`?
            flatten: make predictions and targets one-dimensional?
            name: column in the history; None: the function's name
            kw: more arguments of `func`

        Raises:
            ValueError: `activation` must be one of …, not ….
        """
        ...
    def settle(self) -> None: ...
    def reset(self) -> None: ...
    def accumulate(self, learn: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    def _of_others(self) -> Any:
        """The `ignore_index` of a process that has seen a batch"""
        ...
    def _ignored(self, loss_func: Any) -> Any:
        """The class that does not count; None if the targets may be numbers, for which -100 is as good as any"""
        ...
    def _counting(self, preds: Any, targs: Any) -> tuple[Any, ...]:
        """Without the targets that the loss function ignores"""
        ...
    def _result(self, preds: Any, targs: Any) -> Any: ...
    @property
    def name(self) -> str: ...
    def prepare(self, pred: Tensor) -> Tensor:
        """Apply the activation, the argmax and the threshold to `pred`

        Args:
            pred: the model's output
        """
        ...
    def accum_values(self, preds: Tensor, targs: Tensor, learn: Any = None) -> None:
        """Add a batch of predictions and targets

        Args:
            preds: predictions, already prepared
            targs: their targets
            learn: the Learner, whose `to_detach` is used; None: `learnkit.process.to_detach`
        """
        ...
    def to_cpu(self) -> None:
        """Move the batches that are on the device to the CPU"""
        ...
    def __call__(self, preds: Tensor, targs: Tensor) -> Any:
        """Return `func` of `preds` and `targs`

        Args:
            preds: predictions, used as they are
            targs: their targets
        """
        ...
def best_class(pred: Tensor, axis: int) -> Tensor:
    """Return the class with the largest output; raises ValueError if there is only one output

    Args:
        pred: one output for each class
        axis: the axis of the classes

    Raises:
        ValueError: Predictions … have one output along axis …, so the best class is always 0. For yes/no use a …
    """
    ...
