# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Batches of predictions, put together as they come"""
import torch
from pathlib import Path
from torch.utils.data.distributed import DistributedSampler
from typing import Any

__all__ = ['leaf', 'Rows', 'by_item', 'Gather', 'n_rows']
def disk_tensor(path: str|Path, shape: tuple[Any, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor that is a file: what is written to it goes there

    Args:
        path: the file; `torch.load(path, mmap=True)` opens it later
        shape: of the tensor
        dtype: of its elements
    """
    ...
def open_disk_tensor(path: str|Path, write: bool = False) -> torch.Tensor:
    """The tensor in a file, mapped into memory: only what is looked at is read

    Args:
        path: the file
        write: do changes of the tensor change the file?
    """
    ...
class Rows:
    """One tensor that is filled batch by batch; a list of parts where its size can't be known"""
    n: int|None
    dim: int
    dtype: torch.dtype|None
    places: torch.Tensor|None
    file: str|Path|None
    new: list[Any]
    every: Any
    i: Any
    out: Any
    parts: list[Any]
    dirty: int
    row: Any
    given: Any
    def __init__(
        self,
        n: int|None = None,
        dim: int = 0,
        dtype: torch.dtype|None = None,
        places: torch.Tensor|None = None,
        file: str|Path|None = None,
    ) -> None:
        """One tensor that is filled batch by batch; a list of parts where its size can't be known

        Args:
            n: rows that are expected; more, or fewer, may come
            dim: the dimension along which batches are put together
            dtype: the type for floating-point numbers; None: as they come
            places: for each row, as they come, its place in the result; None: one after the other
            file: the result is this file, mapped into memory
        """
        ...
    def append(self, t: Any) -> None:
        """Take in the rows `t`"""
        ...
    def settle(self) -> Any:
        """Put in the batches that wait"""
        ...
    def _fit(self, new: Any) -> Any: ...
    def _begin(self, t: Any) -> bool:
        """Make room for all rows, if it is known how many there will be"""
        ...
    def _put(self, new: Any) -> None: ...
    def _part(self, t: Any) -> None:
        """Keep `t` as it is, since it does not fit in"""
        ...
    def _own(self, t: Any) -> Any:
        """A copy on the CPU"""
        ...
    def _so_far(self) -> Any:
        """The rows in the order in which they came"""
        ...
    def _written(self, i: Any) -> None:
        """Rows from `i` on were written: let go of the pages that they are in, if there are many"""
        ...
    @property
    def value(self) -> Any:
        """All rows so far: a tensor, or a list if they do not fit together"""
        ...
    def _in_order(self, res: Any) -> Any: ...
leaf: Any
def by_item(b: Any) -> bool:
    """Is `b` a list with an entry for each item, such as file names, or boxes in a dict? It is a leaf: its length is that of the batch"""
    ...
class Gather:
    """`Rows` for each leaf of a nested batch"""
    make: Any
    file: str|Path|None
    spec: Any
    rows: list[Any]
    def __init__(self, n: int|None = None, dim: int = 0, file: str|Path|None = None, **kwargs: Any) -> None:
        """`Rows` for each leaf of a nested batch

        Args:
            n: these two as in `Rows`
            file: the results are files, `{file}.pt`, or `{file}_0.pt` and so on of a nested batch
            kwargs: of `Rows`
        """
        ...
    def append(self, b: Any) -> Any:
        """Take in a batch"""
        ...
    def _file(self, i: Any, alone: Any) -> Any: ...
    @property
    def value(self) -> Any:
        """What was gathered, in the structure of a batch; None if there was nothing"""
        ...
def n_rows(dl: Any) -> int|None:
    """How many rows a loader announces, None if it doesn't say"""
    ...
def places(idxs: Any) -> torch.Tensor|None:
    """For each item, as they come, its place among all that come, in the order of the data set; None if they come in order

    Args:
        idxs: the indices of items in their data set, in the order in which they come
    """
    ...
def dist_sampler(dl: Any) -> DistributedSampler|None:
    """The sampler that gives each process its own part of `dl`, None if there is none"""
    ...
def n_own(dl: Any) -> int|None:
    """How many rows of `dl` are this process's own; None if all that it gives are"""
    ...
def joined(parts: list[Any]) -> tuple[Any, ...]:
    """All indices in order, and a list of the results for them

    Args:
        parts: of each process the indices of its rows, and the results for these rows, nested as they may be
    """
    ...
def join_ranks(idxs: list[Any], res: list[Any]) -> tuple[Any, ...]:
    """The same of all processes, in each of them

    Args:
        idxs: the indices of this process's rows
        res: the results for them
    """
    ...
