# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The training loop on one screen, with every event at its place"""
import torch
from collections.abc import Iterator
from contextlib import contextmanager
from .dispatcher import Dispatcher
from .stream import BatchStream
from torch import nn
from typing import Any

__all__ = ['run_attrs', 'RunState', 'LoopSteps', 'Loop']
class RunState(Dispatcher):
    """The attributes that a run works on; those in `run_attrs` are put back when a run inside of another one ends"""
    dls: Any
    model: nn.Module
    loss_func: Any
    opt: Any
    epoch: int
    n_epoch: int
    start_epoch: int
    duration: Any
    iter: int
    n_iter: int|None
    train_iter: int
    pct_train: float
    batches: BatchStream
    batch: Any
    transfer: Any
    xb: tuple[Any, ...]
    yb: tuple[Any, ...]
    pred: Any
    loss: torch.Tensor
    loss_grad: torch.Tensor
    own_output: Any
    output: Any
    output_loss: torch.Tensor|None
    logger: Any
    create_mbar: bool
    skip_loss: bool
    _training: bool
    stop_reason: str|None
    """why the run is to end soon: see `learn.stop`"""
    @property
    def dl(self) -> Any:
        """The loader of this phase"""
        ...
    @dl.setter
    def dl(self, v: Any) -> None: ...
run_attrs: tuple[Any, ...]
class LoopSteps(RunState):
    """The steps of the loop, each a line or two"""
    def _set_device(self, b: Any) -> Any: ...
    def _split(self, b: Any) -> None: ...
    def _pred(self) -> Any: ...
    def _loss(self) -> Any: ...
    def _backward(self) -> None: ...
    def _step(self) -> None: ...
    def _zero_grad(self) -> None: ...
    def _use(self, dl: Any) -> None: ...
    def _epochs(self) -> Any: ...
    def do_batch(self) -> None:
        """Do the batch at hand; in a phase, `_do_one_batch` as callbacks wrap it"""
        ...
    def _open_batches(self) -> Any: ...
    def _check_exhausted(self) -> None: ...
    def _check_fetched(self, b: Any) -> None: ...
exhausted: object
class Loop(LoopSteps):
    """The training loop"""
    exc: Any
    def _do_fit(self, **phases: Any) -> None: ...
    def _do_epoch(self, train: bool = True, valid: Any = None) -> None: ...
    def _do_epoch_train(self) -> None: ...
    def _do_epoch_validate(self, ds_idx: Any = 1, dl: Any = None) -> None: ...
    def all_batches(self) -> None:
        """Do every batch of `self.batches`

        Raises:
            CancelFit
        """
        ...
    def one_batch(self, i: int, b: Any = None) -> bool:
        """Do a batch; returns False if there is none left

        Args:
            i: the number of the batch
            b: the batch; None: the next one of the loader
        """
        ...
    def _fetch(self) -> Any: ...
    def _do_one_batch(self) -> None: ...
    def _do_grad_opt(self) -> None: ...
    def _do_step(self) -> None: ...
    def say(self, text: Any) -> None:
        """Print `text`, unless the logger is silenced as by `no_logging`

        Args:
            text: a line of text
        """
        ...
    @contextmanager
    def _run(self, mode: str, cbs: Any = None) -> Iterator[None]:
        """Set the mode and add the callbacks of a run; afterwards put back what the run must not change

        Args:
            mode: 'fit', 'validate', 'predict', 'lr_find' or 'sanity'
            cbs: callbacks for this run only

        Raises:
            RuntimeError: a `fit` inside a running `…`… would overwrite its counters and its history: call it afterwards, or …
        """
        ...
    def _end_run(self, trains: Any, outer: Any, before: Any, modules: Any) -> None: ...
    def _no_orphan(self, e: Any) -> Any:
        """`e`, or if it is a Cancel an error that says why it could not end anything"""
        ...
    def stop(self, reason: str = 'stopped') -> None:
        """End training gracefully: finish the batch, validate and record the epoch, then end the fit as by `CancelFit`

        Args:
            reason: why; kept in `learn.stop_reason` until the next fit
        """
        ...
