# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write the parts of sharded tensors, each process its own, and read them with any number of processes"""
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from .sharded import is_sharded
from pathlib import Path
from typing import Any

def split_shards(state: Any, take: Callable[..., Any] = is_sharded) -> tuple[Any, dict[Any, Any]]:
    """Returns `state` with tensors on meta in the place of the sharded ones, and these by the names of their places

    Args:
        state: nested dicts, lists and tuples
        take: which tensors to take out
    """
    ...
def join_shards(state: Any, parts: dict[Any, Any]) -> Any:
    """Returns `state` with the tensors of `parts` in the place of those on meta

    Args:
        state: nested dicts, lists and tuples
        parts: tensors by the names of their places
    """
    ...
@contextmanager
def _plain_errors(kind: Any, what: Any) -> Iterator[None]: ...
def _digest(file: Any) -> list[Any]: ...
def write_shards(parts: dict[Any, Any], folder: Path) -> dict[str, list[Any]]:
    """Writes this process's parts, when all processes call it; returns the files of all; raises OSError in all

    Args:
        parts: sharded tensors by name, the same in all processes
        folder: the folder to write; what is in it is deleted

    Returns:
        name of a file -> size, SHA-256
    """
    ...
def remove_shards(folder: Path) -> None:
    """Deletes such a folder, if it is there

    Args:
        folder: that `write_shards` wrote
    """
    ...
_known: dict[Any, Any]
class _MetadataUnpickler(pickle.Unpickler):
    """Reads DCP's metadata, and nothing else"""
    def find_class(self, module: Any, name: Any) -> Any: ...
def _read_metadata(folder: Any) -> Any: ...
def _check_files(folder: Any, files: Any) -> None:
    """Raise ValueError in all processes if a file is missing or changed; each looks at some of them

    Raises:
        ValueError: … is listed in no way that `write_shards` lists files
    """
    ...
def _empty(t: Any) -> Any:
    """What the tensor `t` on meta is read into: an equal part in each process"""
    ...
def read_shards(state: Any, folder: Path, files: dict[Any, Any]) -> Any:
    """Returns `state` with sharded tensors, or plain ones in a single process; raises ValueError in all processes

    Args:
        state: from a file: what is on meta is to be read
        folder: that `write_shards` wrote
        files: what it returned

    Raises:
        ValueError: … is listed in no way that `write_shards` lists files
        ValueError: … is of another checkpoint: … is not in it, or of another shape or type
    """
    ...
