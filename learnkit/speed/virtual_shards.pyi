# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""VirtualShards: 1, 2, 4 … processes train to the same weights bit for bit, and a run may go on in another number of them"""
from collections.abc import Callable, Iterator
from ..batch_weight import BatchWeight
from ..callback import Callback
from ..events import CancelBatch
from ..feed.seeded_loader import SeededLoader
from ..stream import BatchStream
from typing import Any, NamedTuple

__all__ = ['VirtualShards']
class Shards(NamedTuple):
    """The shards of a batch that are this process's own"""
    own: list[Any]
    """a batch of the loader each; at the end of an epoch perhaps none"""
    any: Any
    """one of the batch's shards, own or not"""
class ShardLoader(SeededLoader):
    """The `Shards` of this process: `n` consecutive batches of `dl` are the shards of one batch"""
    n: int
    size: Any
    first: Any
    stream: BatchStream|None
    plan: list[Any]
    def __init__(self, dl: Any, seed: Any, n: int) -> None:
        """The `Shards` of this process: `n` consecutive batches of `dl` are the shards of one batch

        Args:
            dl: any iterable of batches
            seed: for shuffling and augmentation: a number, or several in a tuple
            n: how many shards a batch has
        """
        ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def seek(self, epoch: Any, start: Any = 0, state: Any = None, limit: Any = None) -> Any:
        """Moves to batch `start` of an epoch, and returns the loader itself

        Args:
            epoch: the number of the epoch
            start: the number of its first batch
            state: what `position` returned there, if anything
            limit: how many batches of the epoch are needed; None: all
        """
        ...
    def own(self, shards: list[Any]) -> list[Any]:
        """Returns those that this process does

        Args:
            shards: of a batch; fewer than `n` at the end of an epoch
        """
        ...
    def _record(self, sampler: Any, seed: Any) -> list[Any]:
        """The batches of indices of this process; where it has none, the first shard, which every batch has"""
        ...
    @property
    def batch_indices(self) -> list[Any]|None:
        """The indices of the items of this process in each batch, from `start` on; `None` where they are not known"""
        ...
class ShardIterator:
    """Takes the `Shards` of each batch from `it`, an iterator of the loader's batches"""
    loader: ShardLoader
    it: Iterator[Any]
    at: int
    def __init__(self, loader: ShardLoader, it: Iterator[Any]) -> None:
        """Takes the `Shards` of each batch from `it`, an iterator of the loader's batches

        Args:
            loader: whose batches these are
            it: of its batches: of this process's own ones if their indices are known, else of all
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Shards: ...
    def _next(self) -> Any: ...
class ShardDone(CancelBatch):
    """Ends a shard after its backward pass; the next one follows"""
_instead: dict[Any, Any]
def check_together(learn: Any) -> None:
    """Raise ValueError if something in this fit would differ with the number of processes

    Args:
        learn: the Learner, in a fit that begins

    Raises:
        ValueError: VirtualShards and … do not go together: …
        ValueError: VirtualShards needs the plain model: it joins the gradients of all processes itself
        ValueError: SyncBatchNorm computes with the items of all processes, which VirtualShards keeps apart: use …
        ValueError: VirtualShards cannot average complex numbers: keep their real and imaginary parts in two tensors
    """
    ...
class VirtualShards(Callback):
    """Trains with `n` shards a batch to the same weights in any number of processes, bit for bit"""
    seed: Any
    threads: Any
    loader: ShardLoader|None
    stack: Any
    silenced: tuple[Any, ...]|list[Any]
    inside: bool
    weigh: BatchWeight|None
    shards: Shards
    params: list[Any]
    buffers: list[Any]
    counters: list[Any]
    n: Any
    dtype: Any
    def __init__(self, n: int = 8) -> None:
        """Trains with `n` shards a batch to the same weights in any number of processes, bit for bit

        Args:
            n: how many batches of the loader, its shards, make a batch for one optimizer step

        Raises:
            ValueError: `n` must be a number of shards, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def _begin_alike(self) -> None:
        """Take over random numbers and weights from process 0"""
        ...
    def _silence(self) -> None: ...
    def before_train(self) -> None: ...
    def _check_threads(self) -> None: ...
    def cleanup(self) -> None: ...
    def wrap_handlers(self, name: str, handlers: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `handlers` such that those of a batch's beginning are called for each shard, those of a step for the batch

        Args:
            name: an event
            handlers: pairs of callback and function, in the order in which they are called
        """
        ...
    def _if_inside(self, f: Any) -> None: ...
    def _take_shards(self) -> None: ...
    def _end_shard(self) -> None: ...
    def wrap_batch(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the shards of a training batch one by one, then a step

        Args:
            do: does one batch
        """
        ...
    def _do_batch(self, do: Any) -> Any: ...
    def _seed(self, shard: Any) -> None:
        """Random numbers that depend on the seed, the epoch, the batch and the shard alone"""
        ...
    def _do_shard(self, do: Any, shard: Any, i: Any) -> bool:
        """Forward and backward pass of a shard; returns False if there is no loss, or a callback cancelled it

        Raises:
            RuntimeError: a … was raised for one of … shards, and the other processes do not hear of it: raise it in …
        """
        ...
    def _message(self, live: Any) -> tuple[Any, ...]:
        """Of a shard: gradients, loss and buffers, and as sums: which gradients there are, whether it is live, its weight

        Raises:
            ValueError: VirtualShards cannot join sparse gradients: write `sparse=False` in the embedding
        """
        ...
    @property
    def n_grads(self) -> int:
        """How many elements the gradients have"""
        ...
    def _take(self, live: Any, kept: Any, means: Any, sums: Any) -> None:
        """Make the means of all shards the gradients, the loss and the buffers; raises CancelBatch if no shard is live

        Raises:
            CancelBatch: every shard of this batch was cancelled
        """
        ...
    def _count(self, most: Any) -> None:
        """Counters and other whole numbers: the largest of all shards"""
        ...
