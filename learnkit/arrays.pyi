# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`DataLoaders` from tensors and NumPy arrays, with a random part for validation"""
from collections.abc import Sequence
from torch import Tensor
from torch.utils.data import TensorDataset
from typing import Any

__all__ = ['tensor']
def _as_tensor(a: Any, i: Any, targ: Any) -> Any:
    """Array number `i` as a tensor; `targ`: is it a target?

    Raises:
        TypeError: Pass the arrays one by one: `DataLoaders.from_tensors(x, y)`.
        TypeError: Array … must hold numbers, but its type is ….
        ValueError: Array … must have a dimension for the items, but is a single number.
    """
    ...
class _TensorItems(Sequence[Any]):
    """The items of some tensors"""
    tensors: Any
    def __init__(self, tensors: Any) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: Any) -> Any: ...
class BatchTensorDataset(TensorDataset):
    """A `TensorDataset` that returns all items of a batch at once"""
    def __getitems__(self, idxs: list[Any]) -> Sequence[Any]:
        """Args:
            idxs: the indices of the items
        """
        ...
def collate_tensors(items: Sequence[Any]) -> Any:
    """The `collate_fn` for a `BatchTensorDataset`: returns the tensors of the batch

    Args:
        items: the items of a batch, from a `BatchTensorDataset`; others, as `predict` has, are collated as usual
    """
    ...
def tensor(*data: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of `data`: `tensor(1, 2, 3)` (fastai's helper)

    Args:
        data: one number, list or array, as for `torch.tensor`; or several numbers
        kwargs: the arguments of `torch.tensor`: `dtype`, `device`, `requires_grad`, …
    """
    ...
