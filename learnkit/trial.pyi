# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.unchanged()`: train for a trial, and leave the Learner exactly as it was"""
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from .learner import Learner
from .snapshot import Snapshot
from torch import nn
from typing import Any

__all__ = ['unchanged']
_plain_types: tuple[Any, ...]
def snapshot_plain(m: nn.Module) -> Snapshot:
    """Take a snapshot of the numbers, texts, tuples and tensors that `m` keeps as plain attributes

    Args:
        m: a module
    """
    ...
def snapshot_model(*models: nn.Module) -> Snapshot:
    """Take a snapshot of all that training changes in modules; raises ValueError for lazy layers

    Args:
        models: models; a loss function may be one too
    """
    ...
def snapshot_optimizer(opt: Any) -> Snapshot:
    """Take a snapshot of the optimizer's state and hyper-parameters, to be restored once

    Args:
        opt: an optimizer or `OptimWrapper`; without effect for a class or function that makes one
    """
    ...
def snapshot_callbacks(cbs: Iterable[Any]) -> Snapshot:
    """Take a snapshot of what callbacks save in a checkpoint, to be restored once

    Args:
        cbs: callbacks
    """
    ...
def snapshot_learner(learn: Learner) -> Snapshot:
    """Take a snapshot of the Learner's attributes and list of callbacks

    Args:
        learn: the Learner
    """
    ...
def _models(learn: Any) -> list[Any]: ...
def _loaders(learn: Any) -> list[Any]: ...
def _persistent(learn: Any) -> list[Any]: ...
def snapshot_training(learn: Learner) -> Snapshot:
    """Take a snapshot of all that training changes: model, optimizer, loaders, callbacks, Learner and random numbers

    Args:
        learn: the Learner
    """
    ...
@contextmanager
def unchanged(learn: Learner) -> Iterator[Learner]:
    """Undo whatever is trained in the block, however it ends; raises RuntimeError in a run, ValueError for lazy layers

    Args:
        learn: the Learner; also as `learn.unchanged()`
    """
    ...
