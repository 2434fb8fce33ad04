# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Data sets and loaders that know their own position: `state_dict` and `load_state_dict`"""
from collections.abc import Iterable, Iterator
from torch.utils.data import IterableDataset
from typing import Any

def is_stateful(o: Any) -> bool:
    """Returns whether `o` knows its position: whether it has `state_dict` and `load_state_dict`

    Args:
        o: a loader or a data set
    """
    ...
class EndTrackingDataset(IterableDataset[Any]):
    """The items of `ds`; `ended` tells whether the last pass reached their end"""
    ended: bool
    ds: Iterable[Any]
    def __init__(self, ds: Iterable[Any]) -> None:
        """The items of `ds`; `ended` tells whether the last pass reached their end

        Args:
            ds: of items
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
def find_stateful(dl: Any) -> tuple[Any, Any]:
    """Returns what knows the position in `dl`, the loader, its data set or `None`; and the loader to iterate over

    Args:
        dl: a loader
    """
    ...
