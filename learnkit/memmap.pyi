# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Tensors that are files: create and open memory-mapped tensors, for results larger than memory"""
import torch
from pathlib import Path
from torch import Tensor
from typing import Any

def create_memmap(path: str|Path, shape: tuple[Any, ...], dtype: torch.dtype) -> Tensor:
    """Creates a memory-mapped tensor, whose values are in the file `path`; raises OSError if the disk is too small

    Args:
        path: the file; `torch.load(path, mmap=True)` opens it later
        shape: the shape of the tensor
        dtype: the type of its elements

    Raises:
        OSError
    """
    ...
def open_memmap(path: str|Path, write: bool = False) -> Tensor:
    """Opens the tensor in a file as a memory-mapped tensor: only what is looked at is read

    Args:
        path: the file
        write: write changes of the tensor to the file? otherwise they stay in memory
    """
    ...
def shared_memmap(path: str|Path, shape: tuple[Any, ...], dtype: torch.dtype, key: str) -> Tensor:
    """Creates or opens a memory-mapped tensor that several processes write to; raises OSError if none of them can

    Args:
        path: the file, in a folder that all processes see
        shape: the shape of the tensor
        dtype: the type of its elements
        key: a name that was not used before, the same in all processes

    Raises:
        OSError
        ValueError: the processes have results that do not fit together: … of …, and … of …
    """
    ...
