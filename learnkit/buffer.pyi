# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Preallocated tensors, in memory or on disk, that collect the results of an epoch batch by batch"""
import torch
from .transfer import Arrival
from pathlib import Path
from torch import Tensor
from typing import Any

__all__ = ['TensorBuffer']
class TensorBuffer:
    """A tensor that is filled batch by batch; a list of parts where its size cannot be known"""
    n: int|None
    dim: int
    dtype: torch.dtype|None
    positions: Tensor|None
    file: str|Path|None
    key: str|None
    sizes: list[Any]|None
    alike: Any
    pending: list[Any]
    max_pending: Any
    coming: tuple[int, Arrival]|tuple[Any, ...]|None
    filled: Any
    out: Any
    parts: list[Any]
    dirty: int
    item_shape: Any
    batch_dtype: Any
    def __init__(
        self,
        n: int|None = None,
        dim: int = 0,
        dtype: torch.dtype|None = None,
        positions: Tensor|None = None,
        file: str|Path|None = None,
        key: str|None = None,
    ) -> None:
        """A tensor that is filled batch by batch; a list of parts where its size cannot be known

        Args:
            n: how many items are expected; more, or fewer, may come; `None`: unknown
            dim: the dimension of the items, along which batches are concatenated
            dtype: the type for floating-point numbers; `None`: as they come
            positions: for each item, as they come, its position in the result; `None`: in sequence
            file: write the result to this file, mapped into memory; `None`: keep it in memory
            key: what processes that share the batches call the file; `None`: they don't
        """
        ...
    def append(self, t: Any) -> None:
        """Adds the results of a batch

        Args:
            t: the results of a batch: a tensor, or a list with one entry per item
        """
        ...
    def _send(self) -> Any: ...
    def flush(self) -> None:
        """Writes the batches that are held back, or on their way"""
        ...
    @property
    def value(self) -> Any:
        """The results so far: a tensor, or a list if they don't fit into one"""
        ...
    @property
    def _is_shared(self) -> bool:
        """Do other processes write their items into the same file?"""
        ...
    def _fits(self, ts: Any) -> Any:
        """Do the batches `ts` fit into the tensor? Allocates it if this is the first batch"""
        ...
    def _allocate(self, t: Any) -> bool:
        """Allocates the tensor for items like those of `t`; False if their number is unknown"""
        ...
    def _write(self, ts: Any) -> None:
        """Writes the batches `ts` to their positions; from an accelerator, sends them on their way"""
        ...
    def _settle(self) -> None:
        """Writes what is on its way, when it is there"""
        ...
    def _put(self, i: Any, ts: Any) -> None:
        """Writes the batches `ts`, which are on the CPU, from item number `i` on"""
        ...
    def _remap(self, n: Any) -> None:
        """Maps the file anew if, with the `n` items just written, many of its pages are in memory"""
        ...
    def _add_part(self, t: Any) -> None:
        """Keeps a copy of `t` on the CPU as a part of its own

        Raises:
            ValueError: a batch does not fit into …, which all processes write to: it was made for … of …; leave out `mmap`
        """
        ...
    def _written(self) -> Any:
        """The items that are written, in the order in which they came"""
        ...
    def _reordered(self, res: Any) -> Any:
        """`res`, whose items are in the order in which they came, in the order of their positions"""
        ...
def _n_items(t: Any, dim: Any) -> Any: ...
