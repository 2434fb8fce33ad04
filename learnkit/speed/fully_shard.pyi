# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""FullyShard: each process holds a part of the parameters, gradients and optimizer state (FSDP2)"""
from collections.abc import Callable
from ..distributed import DistributedTrainer
from typing import Any

__all__ = ['FullyShard']
class FullyShard(DistributedTrainer):
    """Trains one model with all processes, of which each holds a part of the parameters, gradients and optimizer state"""
    called: Any
    """has the sharded model been called? Before, the hook that will note it"""
    by: int|type[Any]|tuple[Any, ...]|Callable[..., Any]
    mesh: Any
    mp: Any
    def __init__(
        self,
        by: int|type[Any]|tuple[Any, ...]|Callable[..., Any] = 10000000,
        mesh: Any = None,
        mp: Any = None,
        shard: bool = True,
        timeout: float = 600.0,
        **kwargs: Any,
    ) -> None:
        """Trains one model with all processes, of which each holds a part of the parameters, gradients and optimizer state

        Args:
            by: fetched together: modules of a class, or of so many parameters, or f(m)
            mesh: a `DeviceMesh` over all processes, of one dimension, or two: (replicate, shard)
            mp: compute in this dtype, or by this `MixedPrecisionPolicy`; None: in that of the weights
            shard: divide the data? False: each process has its own part already
            timeout: seconds that a process waits for the others before it says which one hangs
            kwargs: passed on to `fully_shard`, such as `offload_policy`
        """
        ...
    def after_create(self) -> None: ...
    def before_fit(self) -> None: ...
    def _wrap(self, device: Any) -> None: ...
    def _shard_model(self) -> None:
        """Shard the model of the Learner, if it isn't yet, and let its optimizers know"""
        ...
    def _note_call(self, *args: Any) -> None: ...
    def after_exception(self) -> None: ...
    def _policy(self, root: Any) -> Any:
        """What `fully_shard` is to know of a unit, beside its mesh"""
        ...
