# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Weights to a file and back, without ever running code from a file"""
import torch
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ['Written', 'atomic', 'sync_folder', 'write_atomic', 'is_safetensors', 'check_format', 'write_safetensors',
           'read_safetensors', 'read_state']
class Written:
    """A file that is being written, which remembers why that failed: `torch.save` says something else"""
    f: Any
    failed: Any
    def __init__(self, f: Any) -> None: ...
    def write(self, b: bytes) -> int:
        """Write to the file"""
        ...
    def flush(self) -> None:
        """Bring it to the disk"""
        ...
@contextmanager
def atomic(path: Path) -> Iterator[Any]:
    """A file to write, which appears as `path` when all of it is on the disk; an error leaves what was there before

    Args:
        path: the file; its folder is made
    """
    ...
def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk: without it a file that was renamed may have its old name after a power failure"""
    ...
def write_atomic(obj: Any, path: Path, **kwargs: Any) -> Path:
    """Write to a temporary file beside `path`, flush it to the disk, and rename it: whoever looks sees the old file or the new one

    Args:
        obj: what `torch.save` can write
        path: the file; its folder is made
        kwargs: of `torch.save`
    """
    ...
def is_safetensors(path: Any) -> bool:
    """Does its name ask for the format of safetensors?

    Args:
        path: a path, or an open file
    """
    ...
def check_format(file: Any) -> None:
    """Raise ValueError if the file is named as one of safetensors: these are read and written by their paths

    Args:
        file: an open file
    """
    ...
def _package() -> Any: ...
def write_safetensors(state: dict[Any, Any], path: Path, **metadata: Any) -> Path:
    """Write tensors as `write_atomic` does, in the format of safetensors

    Args:
        state: tensors by name
        path: the file; its folder is made
        metadata: texts
    """
    ...
def read_safetensors(path: Path) -> tuple[Any, ...]:
    """`(tensors, metadata)`, each a dict. Raises ValueError if the file is something else; runs no code.

    Args:
        path: the file
    """
    ...
def check_zip(file: Path|Any) -> None:
    """Raise ValueError if a zip is not one that `torch.save` wrote, or if it is damaged

    Args:
        file: the file, or an open binary file
    """
    ...
def read_state(file: Path|Any) -> dict[Any, Any]:
    """The state in a file, on the CPU. Runs no code: what is not tensors, numbers, texts and containers of them is refused.

    Args:
        file: the file, or an open binary file
    """
    ...
def misfit(new: Any, own: torch.Tensor) -> str:
    """Why `new` cannot be copied to `own`; empty if it can

    Args:
        new: what a file has
        own: what it is to replace
    """
    ...
def check_state(model: torch.nn.Module, state: dict[Any, Any], strict: bool = True) -> None:
    """Raise ValueError if `state` does not fit the model; changes nothing

    Args:
        model: whose weights are to be replaced
        state: by these
        strict: every weight must be there, and no other
    """
    ...
def _kind(o: Any) -> str:
    """What `o` is good for: a number (None is one that is not set), several, or something else"""
    ...
def check_opt_state(opt: Any, state: dict[Any, Any]) -> None:
    """Raise ValueError if `state` cannot be that of an optimizer of this kind; changes nothing

    Args:
        opt: whose state is to be replaced
        state: by this
    """
    ...
_parts: set[Any]
