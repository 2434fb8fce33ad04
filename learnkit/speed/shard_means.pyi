# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The mean over all shards of a batch: of gradients, loss and buffers, the same bits in any number of processes"""
from collections.abc import Iterable
from .fixed_order import MergeTree
from torch import Tensor
from typing import Any

class ShardMeans:
    """Takes gradients, loss and buffers of shards out of the model, and puts their means over all processes in"""
    params: list[Any]
    buffers: list[Any]
    counts: list[Any]
    n: Any
    device: Any
    flags: dict[Any, Any]
    dtype: Any
    tree: MergeTree
    live: Any
    full: Any
    before: list[Any]
    start: list[Any]
    most: Any
    def __init__(self, params: Iterable[Any], modules: Iterable[Any]) -> None:
        """Takes gradients, loss and buffers of shards out of the model, and puts their means over all processes in

        Args:
            params: the parameters that are trained
            modules: modules whose buffers change
        """
        ...
    def begin(self) -> None:
        """Begin a batch: note gradients and buffers as they are now"""
        ...
    def _clear(self) -> None: ...
    def add(self, loss: Tensor|None, weight: int|float|Tensor = 0) -> None:
        """Take a shard out of the model: gradients are gone, and buffers as they were in `begin`

        Args:
            loss: the mean loss of a shard whose backward pass is done; None: it does not count
            weight: how much it weighs

        Raises:
            ValueError: VirtualShards cannot join sparse gradients: write `sparse=False` in the embedding
        """
        ...
    def _message(self, loss: Any, weight: Any) -> tuple[Any, ...]: ...
    def join(self, total: bool = False) -> Tensor:
        """Put the means over all shards of all processes into the model; returns the loss; raises CancelBatch if none counts

        Args:
            total: sums instead of means, of gradients and loss: the weights are numbers of shards

        Raises:
            CancelBatch: every shard of this batch was cancelled
        """
        ...
    def _put_grads(self, flat: Any, some: Any) -> None: ...
    def _put_counts(self) -> None: ...
