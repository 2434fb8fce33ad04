# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The training and validation data: `DataLoaders` from loaders or data sets"""
import torch
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

__all__ = ['FuncLoader', 'as_loader', 'DataLoaders']
class FuncLoader:
    """A loader from a function: each iteration calls it again"""
    f: Callable[..., Any]
    def __init__(self, f: Callable[..., Any]) -> None:
        """A loader from a function: each iteration calls it again

        Args:
            f: called without arguments; returns an iterable of batches
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
def as_loader(dl: Any, nm: str) -> Any:
    """Returns `dl` as a loader; raises TypeError if it is not an iterable of batches that can be read again and again

    Args:
        dl: an iterable of batches, or a function that returns one
        nm: which loader it is, for the message: 'training'
    """
    ...
def _vocab(ds: Any) -> Any: ...
def _size(dl: Any) -> Any:
    """How much a loader gives, in words"""
    ...
class DataLoaders:
    """The loaders for training and validation, with their device, path and vocabulary"""
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
        """The loaders for training and validation, with their device, path and vocabulary

        Args:
            loaders: iterables of batches: for training, for validation (optional), and others
            n_inp: how many elements of a batch go to the model; `None`: all but the last
            device: the device of the model and the batches; `None`: where the model is
            path: the folder for files
            vocab: the names of the classes; `None`: those of the training data set

        Raises:
            TypeError: There must be a loader for training, as in `DataLoaders(train, valid)`.
            ValueError: `n_inp` must be a number of elements that go to the model, 1 or more
        """
        ...
    def __getitem__(self, i: int) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __repr__(self) -> str: ...
    @property
    def train(self) -> Any:
        """The loader for training"""
        ...
    @property
    def valid(self) -> Any:
        """The loader for validation, None if there is none"""
        ...
    @property
    def train_ds(self) -> Any:
        """The data set for training, None if its loader has none"""
        ...
    @property
    def valid_ds(self) -> Any:
        """The data set for validation, None if there is none"""
        ...
    def to(self, device: torch.device|str|None) -> Self:
        """Sets the device of the model and the batches

        Args:
            device: the device; `None`: where the model is
        """
        ...
    def one_batch(self) -> Any:
        """Returns the first batch of the training loader, on `device`; raises ValueError if the loader is empty

        Raises:
            ValueError: The training loader is empty. Are there fewer items than a batch has, with `drop_last=True`?
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
        """Makes `DataLoaders` from arrays, with a random part for validation; raises TypeError or ValueError for bad arrays

        Args:
            arrays: tensors or NumPy arrays of the same length: inputs, then the target
            valid_pct: the fraction of the items for validation, between 0 and 1
            seed: the same seed gives the same split; `None`: follow `set_seed`
            n_inp: how many of the arrays are inputs; `None`: all but the last
            kwargs: passed to `DataLoaders.from_dsets`: `bs`, `val_bs`, `device`, …

        Raises:
            TypeError: There must be arrays to load, as in `DataLoaders.from_tensors(x, y)`.
            ValueError: `valid_pct` must be the fraction of the items for validation
            TypeError: Pass the arrays one by one: `DataLoaders.from_tensors(x, y)`.
            TypeError: Array … must hold numbers, but its type is ….
            ValueError: Array … must have a dimension for the items, but is a single number.
            ValueError: Arrays must have the same length, not ….
            ValueError: There must be 2 items or more, for training and validation, but there is ….
        """
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
        """Makes `DataLoaders` from data sets; raises TypeError or ValueError if one is no data set, or empty

        Args:
            dsets: data sets for training, for validation (optional), and any others
            bs: items in a batch; `None`: the items are batches already
            val_bs: items in a batch of the other loaders; `None`: as for training
            shuffle: shuffle the training data for every epoch?
            n_inp: this and the next three as in `DataLoaders`
            device: the device of the model and the batches; `None`: where the model is
            path: the folder for files
            vocab: the names of the classes; `None`: those of the training data set
            kwargs: passed to `torch.utils.data.DataLoader`

        Raises:
            TypeError: There must be a data set for training, as in `DataLoaders.from_dsets(train)`.
            TypeError: The batch size is called `bs` here, not `batch_size`.
            TypeError: The … must have items and a length (or be iterable), but is a …….
            ValueError: The … is empty.
        """
        ...
    def show_batch(
        self,
        ds_idx: int = 0,
        n: int = 10,
        decode: Callable[..., Any]|None = None,
        stats: tuple[Any, ...]|None = None,
        **kwargs: Any,
    ) -> Any:
        """Show the items of the next batch with their targets: images are drawn, other items listed in a table

        Args:
            ds_idx: number of the loader: 0 is the training set, 1 the validation set
            n: how many items, at most those of a batch
            decode: from a list of token numbers to text, such as `tokenizer.decode`
            stats: mean and standard deviation by which images were normalized; None: as transforms say
            kwargs: `ncols` and `figsize`, for images

        Raises:
            ValueError: there is no loader number …: these DataLoaders have …
        """
        ...
def _make_loader(ds: Any, i: Any, bs: Any, shuffle: Any, kwargs: Any) -> Any:
    """The `DataLoader` of the `i`-th data set

    Raises:
        ValueError: `bs` must be a batch size, 1 or more
        ValueError: `num_workers` must be a number of processes, 0 or more
        TypeError: The … must have items and a length (or be iterable), but is a …….
        ValueError: The … is empty.
    """
    ...
