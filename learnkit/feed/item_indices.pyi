# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which items of the data set are in the batch, in `learn.indices` and in every error message"""
from collections import deque
from collections.abc import Collection, Iterator
from ..callback import Callback
from torch.utils.data import DataLoader
from typing import Any

__all__ = ['knows_indices', 'ItemIndices']
class RecordingSampler:
    """Yields what `sampler` yields, and appends it to the queue `yielded`, which is a new one in each epoch"""
    sampler: Any
    yielded: Any
    def __init__(self, sampler: Any) -> None:
        """Yields what `sampler` yields, and appends it to the queue `yielded`, which is a new one in each epoch

        Args:
            sampler: of indices, or of batches of them
        """
        ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def _record(self, yielded: Any) -> Iterator[Any]: ...
class IndexedIterator:
    """Iterates over batches; `indices` are those of the last batch, also if an item of it failed"""
    it: Iterator[Any]
    queue: Any
    indices: Any
    def __init__(self, it: Iterator[Any], queue: Collection[Any]) -> None:
        """Iterates over batches; `indices` are those of the last batch, also if an item of it failed

        Args:
            it: of batches
            queue: the indices of each batch, in the order of the batches; to a deque more may be added later
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _following(self) -> Any: ...
    def _forget(self) -> None: ...
class RecordingLoader:
    """Stands in for a `DataLoader` in one phase, and records the indices of its batches"""
    dl: DataLoader[Any]
    recording: RecordingSampler
    copy: Any
    def __init__(self, dl: DataLoader[Any]) -> None:
        """Stands in for a `DataLoader` in one phase, and records the indices of its batches

        Args:
            dl: whose attributes it has too
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def batch_indices(self) -> deque[Any]:
        """The indices of the batches that were asked for in this phase, and have not arrived yet"""
        ...
    def __len__(self) -> int: ...
def knows_indices(dl: Any) -> bool:
    """Returns whether it can be known which items are in the batches of `dl`

    Args:
        dl: a loader
    """
    ...
class ItemIndices(Callback):
    """Keeps the indices of the items of the batch in `learn.indices`, and adds them to exceptions as a note"""
    show: Any
    loaders: dict[Any, Any]
    streams: list[Any]
    def __init__(self, show: int = 128) -> None:
        """Keeps the indices of the items of the batch in `learn.indices`, and adds them to exceptions as a note

        Args:
            show: how many indices a message shows at most

        Raises:
            ValueError: `show` must be a whole number, 1 or more
        """
        ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def after_train(self) -> None: ...
    before_validate = before_train
    after_validate = after_train
    def _recording(self, dl: Any) -> Any:
        """A loader that records the indices of `dl`; the same one in each epoch if its workers persist"""
        ...
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
