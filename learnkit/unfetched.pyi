# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Explain a loader without any batch, and batches that are cancelled before they are there"""
from .stream import BatchStream
from typing import Any

max_unfetched: int
def no_batch(what: str) -> ValueError:
    """The error for a loader without batches

    Args:
        what: 'training' or 'validation'
    """
    ...
def warn_no_target(b: Any, training: bool) -> None:
    """Warn that a batch has no target, and say what to write

    Args:
        b: the batch
        training: is it for training?
    """
    ...
def in_memory(dl: Any) -> Any:
    """Return a part of the first batch of `dl` if it is in memory, else None

    Args:
        dl: a loader
    """
    ...
def check_ahead(dls: Any, loss_func: Any) -> None:
    """Look at the validation data before training: raises ValueError if there is no batch, warns if it has no target

    Args:
        dls: the `DataLoaders` of a fit
        loss_func: its loss function
    """
    ...
def ended_generator(e: BaseException) -> str|None:
    """Return the name of the generator that `e` has ended, if any

    Args:
        e: what the data raised
    """
    ...
def in_worker(loader: Any) -> str|None:
    """Return the name of the generator that gives the items in each worker of `loader`, if there is one

    Args:
        loader: the loader
    """
    ...
def lost(name: str, i: int) -> RuntimeError:
    """The error for data that a `CancelBatch` has ended

    Args:
        name: of a generator
        i: the number of the batch that was cancelled
    """
    ...
def check_unfetched(batches: BatchStream, i: int, training: bool, e: BaseException) -> None:
    """Note that a batch was cancelled; raises RuntimeError if this would never end, or has ended the data

    Args:
        batches: the batches of this phase
        i: the number of the batch that was cancelled before it was there
        training: is it a training phase?
        e: the `CancelBatch`

    Raises:
        RuntimeError: … batches in a row were cancelled before they were fetched: a `CancelBatch` in `before_fetch` …
        RuntimeError: the data raised `CancelBatch` for … batches in a row, and would not end: leave such items out in …
    """
    ...
def check_complete(batches: BatchStream, i: int) -> None:
    """Raises RuntimeError if the data has ended because a `CancelBatch` ended its generator

    Args:
        batches: the batches of this phase
        i: how many came, the cancelled ones included
    """
    ...
