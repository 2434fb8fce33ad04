# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Joins what metrics of torchmetrics have accumulated in several processes"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

@contextmanager
def unsynced(metric: Any) -> Iterator[None]:
    """In this block, torchmetrics exchanges nothing with other processes

    Args:
        metric: of torchmetrics, or of any kind
    """
    ...
def joined_state(reduce: Callable[..., Any]|None, vals: list[Any]) -> Any:
    """A state of all processes, from that of each: a tensor, or a list with an entry for each batch

    Args:
        reduce: how torchmetrics joins the state; None: not at all
        vals: the state of each process
    """
    ...
