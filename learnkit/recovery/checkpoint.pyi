# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Kill the run, start the same script again, and get what you would have got"""
from ..callback import Callback
from ..control.every import Every
from pathlib import Path
from typing import Any

__all__ = ['CheckpointCallback']
class CheckpointCallback(Callback):
    """Saves the whole run now and then, keeps the newest and the best, and goes on from the newest with `fit(..., resume='auto')`"""
    asks_place: bool
    every: Every
    root: Path
    monitor: Any
    n_fit: int
    seed: Any
    found: Any
    place: Any
    thread: Any
    failed: Any
    keep: int
    n_best: int
    on_exception: bool
    background: bool
    on_error: str
    overwrite: bool
    ordered: list[Any]
    def __init__(
        self,
        every: Any = '1ep',
        keep: int = 3,
        best: Any = None,
        n_best: int = 1,
        folder: str|Path = 'checkpoints',
        on_exception: bool = False,
        background: bool = False,
        on_error: str = 'warn',
        overwrite: bool = False,
    ) -> None:
        """Saves the whole run now and then, keeps the newest and the best, and goes on from the newest with `fit(..., resume='auto')`

        Args:
            every: how often: '500ba', '2ep', '10m', …; see `Every`
            keep: how many of the newest to keep
            best: keep the best too, by this column of the record, as 'valid_loss', or `Monitor`
            n_best: how many of the best to keep
            folder: where; in the Learner's `path` if relative
            on_exception: after an exception or an interrupt save once more, to look at; no run goes on from it
            background: write while the training goes on, from a copy in memory
            on_error: if a checkpoint cannot be written: 'warn' and go on, or 'raise'
            overwrite: delete what an earlier run left in the folder; with `resume=path`, what is of later batches than that
        """
        ...
    @property
    def folder(self) -> Path:
        """Where the checkpoints of this fit are"""
        ...
    def before_fit(self) -> None: ...
    def _ordered(self, i: Any) -> Any:
        """The loader of this phase, number `i` of `dls`, in an order that depends on the seed and the epoch alone"""
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
    def _begin(self) -> None:
        """Begin anew: is the folder free?"""
        ...
    def _later(self, path: Any, state: Any) -> Any:
        """The checkpoints of later batches than this one: they would be taken for newer than those to come, and these be deleted in their place"""
        ...
    def _go_on(self, resume: Any) -> None:
        """Go on from a checkpoint: from the newest that is whole, or from the one that was named"""
        ...
    def save(self, epoch: int, done: int, suffix: str = '', prefix: str = 'step-', **info: Any) -> None:
        """Save the run

        Args:
            epoch: the epoch to go on with
            done: how many of its batches are done
            suffix: of the file's name
            prefix: of the file's name; only those with 'step-' are gone on from
            info: what else the .json beside it is to say
        """
        ...
    def _place(self, done: Any) -> Any:
        """What the training data says about its place, if counting does not find it"""
        ...
    def _say_where(self) -> None:
        """What an error adds: where the run was, and from where it can go on; a loader's worker that died knows neither"""
        ...
    def _write(self, state: Any, path: Any, info: Any) -> None: ...
    def _wait(self) -> None:
        """Wait for a checkpoint that is being written, and say if it could not be"""
        ...
    def _best(self) -> Any:
        """The best so far, as pairs of value and path"""
        ...
    def _value(self, path: Any) -> Any: ...
    def _among_best(self, value: Any) -> Any: ...
    def _rotate(self) -> None:
        """Delete what is neither among the newest nor among the best, and what a save left that was killed"""
        ...
