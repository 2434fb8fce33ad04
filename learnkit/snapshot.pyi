# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A context in which a Learner may be trained for a trial, and that leaves everything as it was"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from .learner import Learner
from typing import Any

__all__ = ['unchanged']
def _generators(o: Any) -> Any:
    """Puts back the random number generators among the attributes of `o`"""
    ...
def _tensors(d: Any) -> Any:
    """Puts back the tensors in the dict `d`: the same objects, with the same values"""
    ...
_plain: tuple[Any, ...]
def _attributes(m: Any) -> Any:
    """Puts back what the module `m` keeps as plain attributes"""
    ...
def keep_model(learn: Learner) -> Callable[..., Any]:
    """Puts back the model, and a loss function that is a module too"""
    ...
def keep_opt(learn: Learner) -> Callable[..., Any]:
    """Puts back the optimizer's state and hyper-parameters"""
    ...
def keep_data(learn: Learner) -> Callable[..., Any]:
    """Puts back the random number generators of the loaders, and their workers"""
    ...
def keep_callbacks(learn: Learner) -> Callable[..., Any]:
    """Puts back what callbacks would save in a checkpoint"""
    ...
def keep_learner(learn: Learner) -> Callable[..., Any]:
    """Puts back the Learner's attributes"""
    ...
@contextmanager
def unchanged(learn: Learner) -> Iterator[Any]:
    """Whatever is trained inside, and however it ends: afterwards model, optimizer, data, callbacks, Learner and all randomness are as they were

    Args:
        learn: also as `learn.unchanged()`
    """
    ...
