# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One adapter supplies what a fastai callback lacks, when it is added"""
from collections.abc import Iterable
from typing import Any

__all__ = ['modes_of', 'adapt', 'default_callbacks']
_declared: Any
_methods: Any
def modes_of(cls: type[Any]) -> tuple[Any, ...]|None:
    """Return the modes of runs in which fastai would call it

    Args:
        cls: a class of callbacks of another library
    """
    ...
def adapt(cb: Any) -> Any:
    """Return the callback `cb` with all that `Callback` declares; raises TypeError if it is no callback

    Args:
        cb: a callback of this library or another one, or a class of them
    """
    ...
def default_callbacks(own: Iterable[Any]) -> list[Any]:
    """Return `own`, and what of learnkit's is in `defaults.callbacks`; only that, if nothing else is in it

    Args:
        own: the callbacks that a Learner has by default

    Returns:
        those that it gets
    """
    ...
