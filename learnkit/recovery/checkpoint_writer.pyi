# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write checkpoints, in a thread if wanted, read the first one back, and count those that could not be written"""
from collections.abc import Callable
from .retention import Retention
from pathlib import Path
from typing import Any

class CheckpointWriter:
    """Writes checkpoints; warns of those that it cannot write, or raises the error if `on_error` is 'raise'"""
    retention: Retention
    background: bool
    on_error: str
    thread: Any
    failed: Any
    n_failed: int
    read_back: bool
    def __init__(self, retention: Retention, background: bool = False, on_error: str = 'warn') -> None:
        """Writes checkpoints; warns of those that it cannot write, or raises the error if `on_error` is 'raise'

        Args:
            retention: which checkpoints to keep
            background: write in a thread?
            on_error: 'warn' or 'raise'

        Raises:
            ValueError: `on_error` must be 'warn' or 'raise'
        """
        ...
    def restart(self) -> None:
        """Count from the beginning, for another fit"""
        ...
    def write(self, collect: Callable[..., Any], path: Path, sharded: bool = False) -> None:
        """Write a checkpoint, when the one before it is written; all processes call it

        Args:
            collect: returns the state and a dict for the manifest
            path: the file, ending in .pth
            sharded: do all processes write, each its part? Otherwise the first one does
        """
        ...
    def _begin(self, sharded: Any, *args: Any) -> Any: ...
    def _write(self, sharded: Any, path: Any, state: Any, info: Any) -> None: ...
    def _read_back(self, path: Any, first: Any) -> None:
        """Read a checkpoint; one that cannot be read is removed, because it would displace those that can"""
        ...
    def wait(self) -> None:
        """Wait for the checkpoint that is being written; warn or raise if it could not be"""
        ...
