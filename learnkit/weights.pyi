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

    Raises:
        ValueError: … is an open file: pass its path instead, which the .safetensors format needs
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

    Raises:
        TypeError: a .safetensors file holds dense tensors only, but … is a …: save as .pth
    """
    ...
def read_safetensors(path: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns `(tensors, metadata)` of a `.safetensors` file; raises ValueError if it is damaged; runs no code

    Args:
        path: the file to read

    Raises:
        ValueError: … is damaged, or not a .safetensors file: …: …
    """
    ...
def _check_member(o: ZipInfo) -> None:
    """Raise ValueError if `torch.save` would not have written this member

    Args:
        o: a member of the archive

    Raises:
        ValueError: … in it is compressed, and could fill the memory when it is unpacked
        ValueError: … in it points out of its folder
    """
    ...
def check_zip(file: Path|BinaryIO) -> None:
    """Raise ValueError if a zip archive is damaged, or not one that `torch.save` wrote

    Args:
        file: the archive: a path, or an open binary file

    Raises:
        ValueError: … in it is compressed, and could fill the memory when it is unpacked
        ValueError: … in it points out of its folder
        ValueError: two of its members have the same name
        ValueError: its members claim to be larger than the file
        ValueError: the checksum of … is wrong
    """
    ...
def _check_path(path: Any) -> None:
    """Raise an error if `path` is not a file, and name the most similar one

    Raises:
        IsADirectoryError: … is a folder: pass the path of a file
        FileNotFoundError: there is no file ……
    """
    ...
def _load(file: Any) -> Any:
    """`torch.load` after the checks; every error that the content causes becomes a ValueError

    Raises:
        ValueError: two of its members have the same name
        ValueError: its members claim to be larger than the file
        ValueError: the checksum of … is wrong
        ValueError: … is not a weight file, or it holds Python code, which is never run: ask its author to save a …
        ValueError: … is damaged, incomplete, or not written by `torch.save`: …: …
    """
    ...
def read_state(file: Path|BinaryIO) -> dict[Any, Any]:
    """Read a state to the CPU without running code; raises FileNotFoundError, or ValueError if the file is refused

    Args:
        file: the file: a path, or an open binary file

    Raises:
        IsADirectoryError: … is a folder: pass the path of a file
        FileNotFoundError: there is no file ……
        ValueError: … is an open file: pass its path instead, which the .safetensors format needs
        ValueError: … is not a weight file, or it holds Python code, which is never run: ask its author to save a …
        ValueError: … is damaged, incomplete, or not written by `torch.save`: …: …
        ValueError: … holds a …: expected a dictionary of weights
    """
    ...
