# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.unchanged()`: train for a trial, and leave the Learner exactly as it was"""
from collections.abc import Iterator
from contextlib import contextmanager
from .learner import Learner
from .snapshot import Snapshot
from typing import Any

__all__ = ['unchanged']
def _models(learn: Any) -> list[Any]: ...
def _loaders(learn: Any) -> list[Any]: ...
def snapshot_training(learn: Learner) -> Snapshot:
    """Take a snapshot of all that training changes; raises ValueError for lazy layers

    Args:
        learn: the Learner

    Raises:
        ValueError: the model has lazy layers, whose shape the first batch sets for good: call the model once before …
    """
    ...
@contextmanager
def unchanged(learn: Learner) -> Iterator[Learner]:
    """Undo whatever is trained in the block, however it ends; raises RuntimeError in a run, ValueError for lazy layers

    Args:
        learn: the Learner; also as `learn.unchanged()`

    Raises:
        RuntimeError: a trial inside a running `…`… would overwrite its counters and its history: make it before or …
    """
    ...
