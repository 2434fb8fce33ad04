# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Save the whole run at intervals; after a crash the same script resumes it, to the same weights, bit for bit"""
from ..control.every import Every
from .checkpoint_writer import CheckpointWriter
from .data_position import DataPosition
from .folder_lock import FolderLock
from .retention import Retention
from pathlib import Path
from typing import Any

__all__ = ['CheckpointCallback']
class CheckpointCallback(DataPosition):
    """Saves the whole run at intervals, keeps the newest and best checkpoints; `fit(..., resume='auto')` resumes it"""
    home: Any
    every: Every
    root: Path
    monitor: Any
    retention: Retention
    n_fit: Any
    begun: bool
    finished: Any
    who: Any
    lock: FolderLock
    writer: CheckpointWriter
    value: Any
    keep: int|None
    best: Any
    n_best: int
    on_exception: bool
    background: bool
    on_error: str
    overwrite: bool
    def __init__(
        self,
        every: Any = '1ep',
        keep: int|None = 3,
        best: Any = None,
        n_best: int = 1,
        folder: str|Path = 'checkpoints',
        on_exception: bool = False,
        background: bool = False,
        on_error: str = 'warn',
        overwrite: bool = False,
    ) -> None:
        """Saves the whole run at intervals, keeps the newest and best checkpoints; `fit(..., resume='auto')` resumes it

        Args:
            every: how often: '500ba', '2ep', '10m', …; see `Every`
            keep: how many of the newest to keep; None: all
            best: keep the best too, by this column of the history ('valid_loss'), or a `Monitor`
            n_best: how many of the best to keep
            folder: where; in the Learner's `path` if relative
            on_exception: after an exception save once more, to inspect (not if the model is sharded)
            background: write in a thread while training continues, from a copy in memory
            on_error: if a checkpoint cannot be written: 'warn' and continue, or 'raise'
            overwrite: delete an earlier run's checkpoints; with `resume=path`, those of later batches
        """
        ...
    @property
    def folder(self) -> Path:
        """The folder of this fit's checkpoints"""
        ...
    def before_fit(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
    def _resume(self, resume: Any) -> None:
        """Restore the newest checkpoint, or the one at the path `resume`; without one, start from the beginning

        Raises:
            ValueError: … is not the checkpoint of a run: its `identity` is …
            ValueError: … has checkpoints of another run, so this one does not resume: …. Give this run another `folder` in …
            ValueError: the run in … has ended in this process, and this one begins with other random numbers, so it is …
        """
        ...
    def _find_epoch(self, state: Any, stopped: Any) -> None:
        """Set the epoch to begin with: none if the run is finished, or was to stop after the last one"""
        ...
    def save(self, epoch: int, done: int, suffix: str = '', prefix: str = 'step-', **info: Any) -> None:
        """Save a checkpoint; if it cannot be written, warns, or raises the error if `on_error` is 'raise'

        Args:
            epoch: the epoch to resume in
            done: how many of its batches are done
            suffix: of the file's name
            prefix: of the file's name; a run resumes only from files with 'step-'
            info: what else the manifest contains; numbers and strings
        """
        ...
    def _add_note(self) -> None:
        """Add to an exception where the run was, and from which checkpoint it can resume"""
        ...
