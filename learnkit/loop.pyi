# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Training, on one screen"""
import torch
from collections.abc import Iterator
from contextlib import contextmanager
from .dispatcher import Dispatcher
from .stream import BatchStream
from torch import nn
from typing import Any

__all__ = ['run_attrs', 'max_unfetched', 'RunState', 'Loop']
class RunState(Dispatcher):
    """The attributes that a run works on; those in `run_attrs` are put back when a run inside of another one ends"""
    dls: Any
    model: nn.Module
    loss_func: Any
    opt: Any
    epoch: int
    n_epoch: int
    start_epoch: int
    iter: int
    n_iter: int|None
    train_iter: int
    pct_train: float
    batches: BatchStream
    batch: Any
    batch_device: torch.device|None
    unfetched: tuple[Any, ...]
    xb: tuple[Any, ...]
    yb: tuple[Any, ...]
    pred: Any
    loss: torch.Tensor
    loss_grad: torch.Tensor
    logger: Any
    create_mbar: bool
    skip_loss: bool
    _training: bool
    stop_reason: str|None
    """why the run is to end soon: see `learn.stop`"""
    rng: torch.Generator|None
    """draws for the loaders of runs that do not train"""
    @property
    def dl(self) -> Any:
        """The loader of this phase"""
        ...
    @dl.setter
    def dl(self, v: Any) -> None: ...
run_attrs: tuple[Any, ...]
exhausted: object
class Loop(RunState):
    """The training loop"""
    exc: Any
    def _do_fit(self, **phases: Any) -> None: ...
    def _do_epoch(self, train: bool = True, valid: Any = None) -> None: ...
    def _do_epoch_train(self) -> None: ...
    def _do_epoch_validate(self, ds_idx: Any = 1, dl: Any = None) -> None: ...
    def all_batches(self) -> Any:
        """Every batch of `self.batches`"""
        ...
    def one_batch(self, i: int, b: Any = None) -> bool:
        """Batch number `i`: `b`, or the next of the loader; False if there is none"""
        ...
    def _fetch(self) -> Any: ...
    def _do_one_batch(self) -> None: ...
    def _do_grad_opt(self) -> None: ...
    def _do_step(self) -> None: ...
    def _set_device(self, b: Any) -> Any: ...
    def _split(self, b: Any) -> None: ...
    def _pred(self) -> Any: ...
    def _loss(self) -> Any: ...
    def _backward(self) -> None: ...
    def _step(self) -> None: ...
    def _zero_grad(self) -> None: ...
    def do_batch(self) -> None:
        """Do the batch at hand; in a phase, `_do_one_batch` as callbacks wrap it"""
        ...
    def _use(self, dl: Any) -> None:
        """Begin a phase with the batches of `dl`"""
        ...
    def _open_batches(self) -> None:
        """Opening a DataLoader draws a random number: elsewhere, where it is not for training"""
        ...
    def _check_exhausted(self) -> None: ...
    def _check_fetched(self, b: Any) -> None: ...
    @contextmanager
    def _run(self, mode: str, cbs: Any = None) -> Iterator[None]:
        """Set the mode and add the callbacks of a run; afterwards everything that it is not to change is as it was

        Args:
            mode: 'fit', 'validate', 'predict', 'lr_find' or 'sanity'
            cbs: callbacks for this run only
        """
        ...
    def _end_run(self, trains: Any, outer: Any, before: Any, modules: Any) -> None: ...
    def _end_cleanup(self) -> None:
        """Let go of the last batch"""
        ...
    def _no_orphan(self, e: Any) -> Any:
        """`e`, or if it is a Cancel an error that says why it could not end anything"""
        ...
    def stop(self, reason: str = 'stopped') -> None:
        """End training gracefully: this batch is finished, its epoch is validated and recorded, then the fit ends as by `CancelFit`

        Args:
            reason: why; kept in `learn.stop_reason` until the next run
        """
        ...
max_unfetched: int
