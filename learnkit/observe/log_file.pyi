# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A file that grows by whole rows, goes on where a saved run was, and waits while the disk is full"""
from ..stateful import Stateful
from pathlib import Path
from typing import Any

__all__ = ['LogFile']
class LogFile(Stateful):
    """A file to which rows are appended; knows which part of it counts, and holds what the disk has no room for"""
    begun: bool
    path: Any
    head: bytes
    append: bool
    pos: Any
    held: list[Any]
    file: Any
    clean: bool
    error: Any
    def __init__(self, path: Path, head: bytes = b'', append: bool = False) -> None:
        """A file to which rows are appended; knows which part of it counts, and holds what the disk has no room for

        Args:
            path: the file
            head: what it begins with
            append: go on with what is there already? False: replace it
        """
        ...
    def open(self) -> None:
        """Open the file, and leave it as it is; raises OSError if that is impossible"""
        ...
    def write(self, row: bytes) -> None:
        """Append a row; one that can't be written is held until the next call

        Args:
            row: to the end of its line, if it has one
        """
        ...
    def close(self) -> None:
        """Bring the file to the disk and close it; warns if there are rows that could not be written"""
        ...
    def sync(self) -> None:
        """Bring what is written to the disk"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on from `state`: what was written later is cut off when the next row is written

        Args:
            state: from `state_dict`
        """
        ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def head_of(self, data: bytes) -> bytes:
        """Return the part of `data` that is the head

        Args:
            data: the content of the file
        """
        ...
    def _put(self) -> None:
        """Write what is held"""
        ...
    def _cut(self) -> None:
        """Give the file its head, and cut off what does not count"""
        ...
