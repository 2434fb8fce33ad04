# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Collect nested predictions batch by batch, count the items beforehand, and find the position of each"""
from pathlib import Path
from torch import Tensor
from typing import Any

__all__ = ['NestedBuffer']
_tensor_spec: Any
class NestedBuffer:
    """A `TensorBuffer` for each tensor of a nested batch"""
    new_buffer: Any
    file: str|Path|None
    key: str|None
    spec: Any
    n: int|None
    dim: int
    buffers: list[Any]
    def __init__(
        self,
        n: int|None = None,
        dim: int = 0,
        file: str|Path|None = None,
        key: str|None = None,
        **kwargs: Any,
    ) -> None:
        """A `TensorBuffer` for each tensor of a nested batch

        Args:
            n: how many items are expected; `None`: unknown
            dim: the dimension of the items
            file: write the result to `{file}.pt`, of a nested batch to `{file}_0.pt` and so on
            key: what processes that share the batches call the files; `None`: they don't
            kwargs: passed to `TensorBuffer`: `dtype`, `positions`
        """
        ...
    def append(self, b: Any) -> None:
        """Adds the results of a batch; raises ValueError if its structure differs from that of the first batch

        Args:
            b: tensors in nested containers, in the same structure as the batches before

        Raises:
            ValueError: The batches to gather differ in structure: the first is …, this one is ….
        """
        ...
    def _file(self, i: Any, single: Any) -> Any: ...
    def _new(self, i: Any, single: Any) -> Any: ...
    @property
    def value(self) -> Any:
        """The results so far, in the structure of a batch; `None` if there are none"""
        ...
    def join(self, turns: list[Any], order: Tensor|None = None) -> Any:
        """Returns the results of all processes, in each; raises ValueError if they differ in structure or are incomplete

        Args:
            turns: the number of the turn of each batch
            order: for each item, as one process would have them, its position in the result; None: the same

        Raises:
            ValueError: the processes have results that differ in structure: … and …
        """
        ...
def count_items(dl: Any) -> int|None:
    """Returns how many items a loader announces, `None` if it doesn't say

    Args:
        dl: a loader
    """
    ...
def item_positions(idxs: Any) -> Tensor|None:
    """Returns the position of each item in the order of the data set, `None` if the items come in that order

    Args:
        idxs: the indices of the items in their data set, in the order in which they come
    """
    ...
