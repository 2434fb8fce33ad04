# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""VirtualShards: 1, 2, 4 … processes train to the same weights bit for bit; a run may go on in another number"""
from collections.abc import Callable
from ..batch_weight import BatchWeight
from ..callback import Callback
from ..events import CancelBatch
from ..feed.shard_loader import Shards
from .shard_means import ShardMeans
from typing import Any

__all__ = ['VirtualShards']
_instead: dict[Any, Any]
def _obstacle(cb: Any) -> Any: ...
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
    """Trains to the same weights in any number of processes, bit for bit: a batch has `n` shards, which they share"""
    distributes: bool
    together: bool
    seed: Any
    threads: Any
    stack: Any
    added: tuple[Any, ...]|list[Any]
    inside: bool
    weigh: BatchWeight|None
    loader: Any
    shards: Shards
    means: ShardMeans
    n: Any
    def __init__(self, n: int = 8) -> None:
        """Trains to the same weights in any number of processes, bit for bit: a batch has `n` shards, which they share

        Args:
            n: how many batches of the loader, the shards, make the batch of an optimizer step

        Raises:
            ValueError: `n` must be a number of shards, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def _begin_alike(self) -> None:
        """Take over random numbers and weights from process 0, which alone shows what happens"""
        ...
    def before_train(self) -> None: ...
    def cleanup(self) -> None: ...
    def wrap_handlers(self, name: str, handlers: tuple[Any, ...]) -> tuple[Any, ...]:
        """Args:
            name: an event
            handlers: pairs of callback and function, in the order in which they are called
        """
        ...
    def _if_inside(self, f: Any, inside: bool = True) -> None: ...
    def _end_shard(self) -> None: ...
    def _take_shards(self) -> None: ...
    def _seed(self, shard: Any) -> None:
        """Random numbers that depend on the seed, the epoch, the batch and the shard alone"""
        ...
    def _do_shard(self, do: Any, i: Any) -> bool:
        """Forward and backward pass of own shard `i`; returns False if there is none, or no loss, or it was cancelled

        Raises:
            RuntimeError: a … was raised for one of … shards, and the other processes do not hear of it: raise it in …
        """
        ...
    def wrap_batch(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Args:
            do: does one batch
        """
        ...
    def _do_batch(self, do: Any) -> Any: ...
class ShardDone(CancelBatch):
    """Ends a shard after its backward pass; the next one follows"""
