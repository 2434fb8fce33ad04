# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One model, trained by several processes, each on its own part of the data"""
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['DistributedTrainer']
def own_part(dl: Any, seed: int = 0) -> Any:
    """A loader of this process's part of `dl`; `dl` itself if it gives that already; None if it can't be divided

    Args:
        dl: a loader
        seed: of the order in which it shuffles, the same in all processes
    """
    ...
def sync_norms(model: nn.Module) -> dict[Any, Any]:
    """Have batch norms average over all processes; returns the layers as they were, by name

    Args:
        model: its batch norms are replaced
    """
    ...
def unsync_norms(model: nn.Module, old: dict[Any, Any]) -> None:
    """Put the layers back, with the weights and averages that are there now

    Args:
        model: with synchronized batch norms
        old: from `sync_norms`
    """
    ...
class DistributedTrainer(Callback):
    """Trains with all processes of the group, each on its own part of the data (fastai's name)"""
    kept: tuple[Any, ...]|None
    norms: Any
    made: tuple[Any, ...]|list[Any]
    seed: Any
    sync_bn: bool
    shard: bool
    kwargs: Any
    def __init__(self, sync_bn: bool = False, shard: bool = True, **kwargs: Any) -> None:
        """Trains with all processes of the group, each on its own part of the data (fastai's name)

        Args:
            sync_bn: have batch norms average over all processes (not on the CPU)
            shard: divide the data; False: each process has its own part already
            kwargs: for `DistributedDataParallel`
        """
        ...
    def before_fit(self) -> None: ...
    def _shared_seed(self, device: Any) -> Any:
        """Returns the seed of process 0, in every process"""
        ...
    def _divided(self, dls: Any) -> Any: ...
    def _be_quiet(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def cleanup(self) -> None: ...
