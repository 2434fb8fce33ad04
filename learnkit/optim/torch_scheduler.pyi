# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""TorchScheduler: uses any scheduler of torch.optim.lr_scheduler, stepped after each optimizer step or each epoch"""
from collections.abc import Callable
from .param_scheduler import Scheduler
from torch.optim.lr_scheduler import LRScheduler
from typing import Any

__all__ = ['TorchScheduler']
class TorchScheduler(Scheduler):
    """Steps a scheduler of `torch.optim.lr_scheduler` after each optimizer step or each epoch"""
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
        """Steps a scheduler of `torch.optim.lr_scheduler` after each optimizer step or each epoch

        Args:
            make: a scheduler class, a `partial` of it, a function of the optimizer, or a scheduler
            interval: 'step': after each step of the optimizer; 'epoch': after each epoch
            monitor: the column of the history that `ReduceLROnPlateau` monitors

        Raises:
            ValueError: interval must be 'step' or 'epoch'
            TypeError: give the class of a scheduler, a `partial` of it or a function of the optimizer, such as …
            TypeError: … needs … too: write `TorchScheduler(partial(…, …=...))`
        """
        ...
    def before_fit(self) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Restore the scheduler's state from a checkpoint

        Args:
            state: what `state_dict` returned
        """
        ...
    def _optimizer_stepped(self, *args: Any) -> None: ...
    def before_train(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> Any: ...
    def after_row(self, row: Any, epoch: Any) -> None:
        """Args:
            epoch: of a validation within an epoch
        """
        ...
    def _step_with(self, row: Any) -> None: ...
    def cleanup(self) -> None: ...
    def _begin(self, opt: Any) -> Any:
        """Use the given scheduler, or make one and load the state that came before it

        Raises:
            ValueError: this scheduler belongs to another optimizer than that of the Learner: give `…` or a `partial` of …
            TypeError: … must make a scheduler of PyTorch
            ValueError: ReduceLROnPlateau needs a recorded value, and there is one each epoch: write interval='epoch'
        """
        ...
    def _write_lrs(self) -> None: ...
    def _catch_up(self) -> Any:
        """Make the steps of the epochs before `start_epoch`

        Raises:
            ValueError: the loader has no length, so the number of steps in the … epochs before is unknown: resume from a …
        """
        ...
def _required(make: Any) -> list[Any]:
    """The arguments that must be given beside the optimizer"""
    ...
def _settings(opt: Any) -> list[Any]:
    """Returns a copy of the parameter groups of `opt` without the parameters"""
    ...
def _restore(opt: Any, settings: Any, had_step: Any) -> None:
    """Remove from `opt` what schedulers wrote into it"""
    ...
