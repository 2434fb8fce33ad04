# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write a file so that a crash leaves either the old file or the complete new one"""
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ['AtomicFile', 'sync_folder', 'atomic', 'write_atomic']
class AtomicFile:
    """The temporary file that `atomic` opens; keeps the error of a failed write, because `torch.save` hides it"""
    f: BinaryIO
    error: Any
    def __init__(self, f: BinaryIO) -> None:
        """The temporary file that `atomic` opens; keeps the error of a failed write, because `torch.save` hides it

        Args:
            f: the open file
        """
        ...
    def write(self, b: bytes) -> int:
        """Write `b`; returns the number of bytes written, raises OSError if the write fails

        Args:
            b: what to write
        """
        ...
    def flush(self) -> None:
        """Flush the file to the disk (`fsync`)"""
        ...
_cannot_sync: set[Any]
def sync_folder(path: Path) -> None:
    """Flush a folder's list of names to the disk, if it can be: without it, a power failure can undo a rename

    Args:
        path: the folder
    """
    ...
@contextmanager
def atomic(path: Path) -> Iterator[AtomicFile]:
    """Open a file to write that appears as `path` only when it is complete and on the disk; an error leaves the old file

    Args:
        path: the file to write; its folder is created
    """
    ...
def write_atomic(obj: Any, path: Path, **kwargs: Any) -> Path:
    """Write `obj` with `torch.save` to a temporary file, flush it to the disk, and rename it to `path`; returns `path`

    Args:
        obj: what `torch.save` can write
        path: the file to write; its folder is created
        kwargs: arguments of `torch.save`
    """
    ...
