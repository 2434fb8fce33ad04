# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Checks and hints for common mistakes with the model, the loss function and the targets"""
from torch import Tensor
from typing import Any

_kinds: dict[Any, Any]
def loss_kind(loss_func: Any) -> str|None:
    """Returns the kind of a PyTorch loss: over class numbers, over logits of yes or no, or number by number

    Args:
        loss_func: Any loss function, maybe a `partial`

    Returns:
        'classes', 'binary', 'numbers', or None if it is not one of PyTorch's
    """
    ...
def _is_joined(a: Any, b: Any) -> Any:
    """Is one of the shapes `a` and `b` the other with axes joined?"""
    ...
def class_axis(pred: Tensor) -> int:
    """Returns the axis of `pred` along which PyTorch's losses expect the classes

    Args:
        pred: the model's output
    """
    ...
def _shape_tip(ps: Any, ts: Any, want: Any, axis: Any) -> str:
    """What to write when targets have shape `ts` instead of `want`"""
    ...
def _check_classes(name: Any, pred: Any, targ: Any, axis: Any, flatten: Any) -> None:
    """Can `targ` hold one class number for each item of `pred`, whose classes are along `axis`?

    Raises:
        ValueError: `…` got predictions …: with one output along axis … the loss is always 0. For yes or no use …
        TypeError: `…` wants class numbers (integers), but the targets are …. Write `y.long()`, or give probabilities …
        ValueError: `…` got predictions …, with … classes along axis …, so the targets should have shape …, but they …
    """
    ...
def _check_numbers(name: Any, pred: Any, targ: Any, flatten: Any) -> None:
    """Does every number in `pred` have one partner in `targ`?

    Raises:
        ValueError: `…` compares number by number, but the predictions are … and the targets …. Give both the same …
    """
    ...
def check_targets(kind: str|None, name: str, pred: Tensor, targ: Tensor, axis: int, flatten: bool = False) -> None:
    """Raises TypeError or ValueError if types or shapes of `pred` and `targ` do not fit a loss of this `kind`

    Args:
        kind: Kind of the loss, from `loss_kind`; None: nothing is checked
        name: Name of the loss function, for the message
        pred: Predictions
        targ: Targets
        axis: Axis of the predictions that holds the classes
        flatten: Does the loss flatten its arguments, so that axes may be joined?

    Raises:
        ValueError: `…` got predictions …: with one output along axis … the loss is always 0. For yes or no use …
        TypeError: `…` wants class numbers (integers), but the targets are …. Write `y.long()`, or give probabilities …
        ValueError: `…` got predictions …, with … classes along axis …, so the targets should have shape …, but they …
        ValueError: `…` compares number by number, but the predictions are … and the targets …. Give both the same …
    """
    ...
def _are_tensors(pred: Any, targs: Any) -> Any: ...
def check_loss(loss_func: Any, pred: Any, *targs: Any) -> None:
    """Raises TypeError or ValueError if types or shapes of `pred` and `targs` cannot be what `loss_func` wants

    Args:
        loss_func: Any loss function; nothing is checked for those that PyTorch does not have
        pred: What the model returned
        targs: The targets
    """
    ...
def _check_values(f: Any, pred: Any, targ: Any) -> None:
    """Are values where the loss wants them? On an accelerator this would wait for it, so only on the CPU

    Raises:
        ValueError: `…` wants predictions from 0 to 1, but yours go from … to …: use `BCEWithLogitsLossFlat()`, for a …
        ValueError: `…` wants targets from 0 to 1, but yours go from … to …: 0 is no and 1 is yes; for classes use …
    """
    ...
def _check_unit(name: Any, what: Any, t: Any, hint: Any) -> None: ...
def _warn_activated(name: Any, inner: Any, pred: Any, axis: Any) -> None:
    """Warn of probabilities where the loss makes them itself, and of none where it does not"""
    ...
def _range_hint(targ: Any, n_cls: Any, ignore_index: Any) -> Any:
    """Are there class numbers in `targ` that `n_cls` classes do not have?"""
    ...
def loss_hint(loss_func: Any, pred: Any, *targs: Any) -> str:
    """Returns what is probably wrong after `loss_func` has raised an exception

    Args:
        loss_func: The loss function that failed
        pred: Its predictions
        targs: Its targets

    Returns:
        Empty if nothing is known
    """
    ...
def subclass_hint(e: Exception) -> str:
    """Returns what to do if `e` says that tensors of different classes do not go together

    Args:
        e: What the model or the loss raised

    Returns:
        Empty if nothing is known
    """
    ...
def model_hint(e: Exception, xb: tuple[Any, ...]) -> str:
    """Returns what is probably wrong after the model has raised the exception `e`

    Args:
        e: What the model raised
        xb: The inputs that it was called with

    Returns:
        Empty if nothing is known
    """
    ...
def output_loss(pred: Any) -> Tensor|None:
    """Returns the loss in the output of a model: its key or attribute `loss`

    Args:
        pred: What the model returned

    Returns:
        None if there is none
    """
    ...
