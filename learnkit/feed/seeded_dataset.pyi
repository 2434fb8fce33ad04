# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Random augmentation that depends on a seed, the epoch and the index of the item, and on nothing else"""
from collections.abc import Callable, Sequence
from torch.utils.data import Dataset
from typing import Any

class SeededDataset(Dataset[Any]):
    """The items of `ds`, with keys `(seed, epoch, index)`: what is drawn at random for an item depends on its key alone"""
    ds: Any
    generators: Sequence[Any]
    def __init__(self, ds: Any, generators: Sequence[Any] = ()) -> None:
        """The items of `ds`, with keys `(seed, epoch, index)`: what is drawn at random for an item depends on its key alone

        Args:
            ds: a data set that has indices
            generators: that are seeded too: those that it draws from
        """
        ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: tuple[Any, ...]) -> Any: ...
    def _seed(self, key: Any) -> None: ...
    @property
    def __getitems__(self) -> Callable[..., Any]|None:
        """For data sets that make a batch at once; `None` for the others, as `torch.utils.data` expects"""
        ...
class WorkerInit:
    """A `worker_init_fn` for a `SeededDataset`: `get_worker_info` tells of the data set that is in it"""
    init: Callable[..., Any]|None
    def __init__(self, init: Callable[..., Any]|None) -> None:
        """A `worker_init_fn` for a `SeededDataset`: `get_worker_info` tells of the data set that is in it

        Args:
            init: the loader's own, called afterwards
        """
        ...
    def __call__(self, worker_id: int) -> None: ...
