# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A pair of loaders, and how a batch falls into inputs and targets"""
import torch
from collections.abc import Iterator
from pathlib import Path
from torch.utils.data import TensorDataset
from typing import Any, Self

__all__ = ['FuncLoader', 'as_loader', 'DataLoaders']
class FuncLoader:
    """A loader that reads `f()` from its beginning each time"""
    f: Any
    def __init__(self, f: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
def as_loader(dl: Any, nm: str) -> Any:
    """`dl` as a loader, or a TypeError with the reason why it is none

    Args:
        dl: what was given as a loader
        nm: which one it is, for the message
    """
    ...
def _vocab(ds: Any) -> Any: ...
class DataLoaders:
    """The loaders for training and validation, and what belongs to both"""
    loaders: list[Any]
    n_inp: Any
    path: Path
    device: Any
    vocab: Any
    def __init__(
        self,
        *loaders: Any,
        n_inp: int|None = None,
        device: torch.device|str|None = None,
        path: str|Path = '.',
        vocab: Any = None,
    ) -> None:
        """The loaders for training and validation, and what belongs to both

        Args:
            loaders: for training, for validation (optional), and any others: iterables of batches
            n_inp: how many elements of a batch go to the model; `None`: all but the last
            device: where the model and the batches should be; `None`: where the model is
            path: where files go
            vocab: the names of the classes; `None`: what the training data set says
        """
        ...
    def __getitem__(self, i: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def train(self) -> Any: ...
    @property
    def valid(self) -> Any: ...
    @property
    def train_ds(self) -> Any: ...
    @property
    def valid_ds(self) -> Any: ...
    def to(self, device: torch.device|str|None) -> Self:
        """Have the model and the batches on `device`"""
        ...
    def one_batch(self) -> Any:
        """A batch of the training loader, on `device`"""
        ...
    @classmethod
    def from_dsets(
        cls,
        *dsets: Any,
        bs: int|None = 64,
        val_bs: int|None = None,
        shuffle: bool = True,
        n_inp: int|None = None,
        device: torch.device|str|None = None,
        path: str|Path = '.',
        vocab: Any = None,
        **kwargs: Any,
    ) -> Self:
        """`DataLoaders` with a `torch.utils.data.DataLoader` for each data set

        Args:
            dsets: for training, for validation (optional), and any others
            bs: items in a batch; `None`: the items are batches already
            val_bs: items in a batch of the other loaders; `None`: as in training
            shuffle: a new random order for every training epoch?
            n_inp: this and the next three as in `DataLoaders`
            device: where the model and the batches should be
            path: where files go
            vocab: the names of the classes
            kwargs: for `torch.utils.data.DataLoader`
        """
        ...
    @classmethod
    def from_tensors(
        cls,
        *arrays: Any,
        valid_pct: float = 0.2,
        seed: int|None = None,
        n_inp: int|None = None,
        **kwargs: Any,
    ) -> Self:
        """`DataLoaders` of arrays, with a random part of the rows for validation

        Args:
            arrays: tensors or NumPy arrays with as many rows: inputs, then the target
            valid_pct: the part of the rows for validation, between 0 and 1
            seed: the same seed gives the same split; `None`: follow `set_seed`
            n_inp: how many of the arrays are inputs; `None`: all but the last
            kwargs: for `DataLoaders.from_dsets`: `bs`, `val_bs`, `device`, …
        """
        ...
def _make_loader(ds: Any, i: Any, bs: Any, shuffle: Any, kwargs: Any) -> Any: ...
def _to_tensor(a: Any, i: Any, targ: Any) -> Any:
    """Array number `i` as a tensor; `targ`: is it a target?"""
    ...
class _Rows:
    """The rows of some tensors"""
    ts: Any
    def __init__(self, ts: Any) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: Any) -> Any: ...
class TensorRows(TensorDataset):
    """A `TensorDataset` that can give the rows of a batch all at once"""
    def __getitems__(self, idxs: Any) -> Any: ...
def whole_batch(rows: Any) -> tuple[Any, ...]:
    """A `collate_fn` for `TensorRows`"""
    ...
