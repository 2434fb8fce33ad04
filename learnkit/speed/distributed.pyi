# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""DistributedTrainer and distrib_ctx: data-parallel training, each process on its own part of the data"""
from ..callback import Callback
from typing import Any

__all__ = ['DistributedTrainer']
def _is_plain_sampler(s: Any) -> Any:
    """Does `s` sample every item once, in order or shuffled?"""
    ...
def shard_loader(dl: Any, seed: int = 0) -> Any:
    """Returns a loader of this process's part of `dl`; `dl` itself if it is sharded already; `None` if it cannot be

    Args:
        dl: a loader
        seed: the seed for shuffling, the same in all processes
    """
    ...
class DistributedTrainer(Callback):
    """Trains one model with all processes of the group, each on its own part of the data (fastai's name)"""
    replaced: tuple[Any, ...]|None
    silenced: tuple[Any, ...]|list[Any]
    norms: Any
    samplers: tuple[Any, ...]|list[Any]
    seed: Any
    sync_bn: bool
    shard: bool
    kwargs: Any
    def __init__(self, sync_bn: bool = False, shard: bool = True, **kwargs: Any) -> None:
        """Trains one model with all processes of the group, each on its own part of the data (fastai's name)

        Args:
            sync_bn: average batch norms over all processes? (not on the CPU)
            shard: divide the data? False: each process has its own part already
            kwargs: passed on to `DistributedDataParallel`
        """
        ...
    def before_fit(self) -> None: ...
    def _shared_seed(self, device: Any) -> Any:
        """The seed of process 0, in every process"""
        ...
    def _silence(self) -> None:
        """No rows and no progress bar; the end of the run sets `learn.logger` back"""
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def cleanup(self) -> None: ...
    def _shard(self, dls: Any) -> Any:
        """A copy of `dls` with sharded loaders; those that cannot be divided stay whole, except for the training loader

        Raises:
            ValueError: this training data cannot be divided among the processes: use a `DataLoader` of a data set that has …
        """
        ...
