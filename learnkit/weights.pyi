# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Read and write weights as .pth or .safetensors, without ever running code from a file"""
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TypeGuard
from zipfile import ZipInfo

__all__ = ['is_safetensors', 'check_format', 'write_safetensors', 'read_safetensors', 'read_state']
def is_safetensors(path: Any) -> TypeGuard[Path]:
    """Does the path end in `.safetensors`?

    Args:
        path: a path, or an open file
    """
    ...
def check_format(file: Any) -> None:
    """Raise ValueError if an open file is named `.safetensors`: that format is read and written by path only

    Args:
        file: an open file
    """
    ...
def _safetensors() -> ModuleType:
    """Import `safetensors.torch`; raises ImportError with the command that installs it"""
    ...
def write_safetensors(state: dict[Any, Any], path: Path, **metadata: str) -> Path:
    """Write tensors atomically to a `.safetensors` file; raises TypeError for anything but dense tensors

    Args:
        state: tensors by name
        path: the file to write; its folder is created
        metadata: texts to store beside the tensors
    """
    ...
def read_safetensors(path: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns `(tensors, metadata)` of a `.safetensors` file; raises ValueError if it is damaged; runs no code

    Args:
        path: the file to read
    """
    ...
def _check_member(o: ZipInfo) -> None:
    """Raise ValueError if `torch.save` would not have written this member

    Args:
        o: a member of the archive
    """
    ...
def check_zip(file: Path|BinaryIO) -> None:
    """Raise ValueError if a zip archive is damaged, or not one that `torch.save` wrote

    Args:
        file: the archive: a path, or an open binary file
    """
    ...
def _check_path(path: Any) -> None:
    """Raise an error if `path` is not a file, and name the most similar one"""
    ...
def _load(file: Any) -> Any:
    """`torch.load` after the checks; every error that the content causes becomes a ValueError"""
    ...
def read_state(file: Path|BinaryIO) -> dict[Any, Any]:
    """Read a state to the CPU without running code; raises FileNotFoundError, or ValueError if the file is refused

    Args:
        file: the file: a path, or an open binary file
    """
    ...
