# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Any `torch.optim.lr_scheduler`, per step or per epoch, as a callback"""
from collections.abc import Callable
from .schedule import Scheduler
from torch.optim.lr_scheduler import LRScheduler
from typing import Any

__all__ = ['TorchScheduler']
class TorchScheduler(Scheduler):
    """Steps a scheduler of `torch.optim.lr_scheduler`"""
    saves: tuple[Any, ...]
    sched: Any
    hook: Any
    kept: tuple[Any, ...]|None
    due: bool
    behind: bool
    make: Callable[..., Any]|LRScheduler
    interval: str
    monitor: str
    def __init__(
        self,
        make: Callable[..., Any]|LRScheduler,
        interval: str = 'epoch',
        monitor: str = 'valid_loss',
    ) -> None:
        """Steps a scheduler of `torch.optim.lr_scheduler`

        Args:
            make: a scheduler's class, a `partial` of one, a function of the torch optimizer, or a scheduler of `learn.opt.opt`
            interval: 'step': after each step of the optimizer; 'epoch': after each epoch
            monitor: the column of the record that `ReduceLROnPlateau` watches
        """
        ...
    def before_fit(self) -> None: ...
    def load_state_dict(self, state: Any) -> None: ...
    def _optimizer_stepped(self, *args: Any) -> None: ...
    def before_train(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> Any: ...
    def cleanup(self) -> None: ...
    def _begin(self, opt: Any) -> Any:
        """Take the scheduler there is, or make one; go on from a state that was loaded before there was one"""
        ...
    def _write_lrs(self) -> None: ...
    def _catch_up(self) -> Any:
        """A fit that begins at a later epoch has a scheduler that has made the steps before"""
        ...
def _settings(opt: Any) -> list[Any]:
    """What is in the groups of `opt`, besides parameters"""
    ...
def _restore(opt: Any, settings: Any, had_step: Any) -> None:
    """Take out of `opt` what schedulers put in"""
    ...
