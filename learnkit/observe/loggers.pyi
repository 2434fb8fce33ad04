# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Writes the numbers of a run to a file of JSON lines; base class of loggers for other services"""
from ..callback import Callback
from pathlib import Path
from typing import Any

__all__ = ['MetricsLogger', 'JsonLogger']
class MetricsLogger(Callback):
    """Base class of loggers: passes the numbers of all observers, and the Recorder's history, to `write(metrics, step)`"""
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Write `metrics`; raises NotImplementedError unless a subclass defines it

        Args:
            metrics: numbers by name
            step: training batches so far
        """
        ...
    def log_metrics(self, metrics: dict[Any, Any], step: int) -> None:
        """Pass `metrics` to `write`, in the main process only

        Args:
            metrics: numbers by name
            step: training batches so far
        """
        ...
    def after_epoch(self) -> None: ...
class JsonLogger(MetricsLogger):
    """Writes each row of numbers as a line of JSON: `{"step": 10, "batch_loss": 0.5}`"""
    file: Any
    pos: Any
    fname: Path
    append: bool
    def __init__(self, fname: str|Path = 'log.jsonl', append: bool = False) -> None:
        """Writes each row of numbers as a line of JSON: `{"step": 10, "batch_loss": 0.5}`

        Args:
            fname: the file, relative to `learn.path`
            append: append to an existing file instead of replacing it
        """
        ...
    def before_fit(self) -> None: ...
    def _truncate(self) -> None: ...
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Write a line, and flush the file

        Args:
            metrics: numbers by name
            step: training batches so far
        """
        ...
    def cleanup(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the length of the file"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Cut off what was written after `state` was saved

        Args:
            state: from `state_dict`
        """
        ...
    def read_log(self) -> list[Any]:
        """Return the rows of the file; raises FileNotFoundError if there is no file yet

        Args:
            self: dictionaries
        """
        ...
_non_finite: tuple[Any, ...]
def _encode(v: Any) -> Any: ...
