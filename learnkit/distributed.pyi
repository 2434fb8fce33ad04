# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`DistributedTrainer`: data-parallel training, each process on its own part of the data"""
from .callback import Callback
from torch.nn.parallel import DistributedDataParallel
from typing import Any

__all__ = ['DistributedTrainer', 'GradientExchange']
def share_random_states() -> None:
    """Gives every process the random states of process 0; all of them call it"""
    ...
class DistributedTrainer(Callback):
    """Trains one model with all processes of the group, each on its own part of the data (fastai's name)"""
    together: bool
    replaced: Any
    """model and data"""
    norms: Any
    samplers: tuple[Any, ...]|list[Any]
    seed: Any
    added: tuple[Any, ...]|list[Any]
    buffers: Any
    """the model's"""
    equal: bool
    apart: bool
    sync_bn: bool
    shard: bool
    timeout: float
    kwargs: Any
    def __init__(self, sync_bn: bool = False, shard: bool = True, timeout: float = 600.0, **kwargs: Any) -> None:
        """Trains one model with all processes of the group, each on its own part of the data (fastai's name)

        Args:
            sync_bn: average batch norms over all processes? (not on the CPU)
            shard: divide the data? False: each process has its own part already
            timeout: seconds that a process waits for the others before it says which one hangs
            kwargs: passed on to `DistributedDataParallel`
        """
        ...
    def before_fit(self) -> None: ...
    def after_load_checkpoint(self) -> None: ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def after_backward(self) -> None: ...
    def after_batch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _wrap(self, device: Any) -> None:
        """Put the model into `DistributedDataParallel`; what that does not exchange is left to `GradientExchange`"""
        ...
    def _exchange(self, params: Any) -> None:
        """Let the processes exchange the gradients of `params`, and of what is trained outside of the model; and agree"""
        ...
    def _check_alike(self) -> None:
        """Raise ValueError, in all processes, if they are about to do different things

        Raises:
            ValueError: the processes are to train differently: the … in process 0: …, in process …: …
        """
        ...
    def _shard(self, dls: Any) -> Any:
        """A copy of `dls` with a part of the training data; raises ValueError if it cannot be divided

        Raises:
            ValueError: this training data cannot be divided among the processes: use a `DataLoader` of a data set that has …
        """
        ...
_new: str
_sync_buffers: Any
def form_buckets(ddp: DistributedDataParallel) -> None:
    """Let `ddp` form its buckets of gradients now, not after the first batch; all processes call it

    Args:
        ddp: around a model
    """
    ...
class GradientExchange(Callback):
    """Replaces gradients by their mean over all processes, before the step"""
    params: list[Any]
    def __init__(self, params: list[Any]) -> None:
        """Replaces gradients by their mean over all processes, before the step

        Args:
            params: whose gradients
        """
        ...
    def before_step(self) -> None: ...
def trainers(learn: Any, cbs: Any) -> list[Any]:
    """Return what trains with the other processes: a `DistributedTrainer`; nothing in one process, or if there is one

    Args:
        learn: a Learner
        cbs: callbacks of its next fit
    """
    ...
