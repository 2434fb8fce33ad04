# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One adapter supplies what a fastai callback lacks, when it is added"""
from collections.abc import Iterable
from ..callback import Callback
from typing import Any

__all__ = ['adapt', 'default_callbacks', 'cast_tensor', 'CastToTensor']
_declared: Any
_methods: Any
def _modes_of(cls: Any) -> Any:
    """The modes of runs in which fastai would call callbacks of the class `cls`; None: all"""
    ...
def adapt(cb: Any) -> Any:
    """Return the callback `cb` with all that `Callback` declares; raises TypeError if it is no callback

    Args:
        cb: a callback of this library or another one, or a class of them

    Raises:
        TypeError: … is no callback: …
    """
    ...
def default_callbacks(own: Iterable[Any], cbs: Any = None) -> list[Any]:
    """Return `own`, and what of learnkit's is in `defaults.callbacks`, or only that; without what `cbs` have already

    Args:
        own: the callbacks that a Learner has by default
        cbs: those that it was given

    Returns:
        those that it gets beside them
    """
    ...
def _class(cb: Any) -> Any: ...
def cast_tensor(b: Any) -> Any:
    """Return `b` with plain tensors for those of subclasses

    Args:
        b: nested tensors

    Returns:
        the same, as plain tensors
    """
    ...
class CastToTensor(Callback):
    """Makes plain tensors of the batch's: those of fastai's data have classes of their own, such as `TensorImage`"""
    def before_batch(self) -> None: ...
