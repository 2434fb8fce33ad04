# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Find the checkpoint from which a run resumes, and make sure that old and new checkpoints are not mixed up"""
from ..learner import Learner
from pathlib import Path
from typing import Any

def clear_folder(folder: Path, overwrite: bool) -> None:
    """Make sure that `folder` has no checkpoints: deletes them if `overwrite` is True, else raises ValueError

    Args:
        folder: for the checkpoints of a new run
        overwrite: delete those of an earlier run?

    Raises:
        ValueError: … has checkpoints of an earlier run (the newest is …): pass `resume='auto'` to `fit` to continue …
    """
    ...
def later_checkpoints(folder: Path, path: Path, state: dict[Any, Any], overwrite: bool) -> list[Path]:
    """Return the checkpoints of later batches than this one; raises ValueError if there are any and `overwrite` is False

    Args:
        folder: with checkpoints
        path: the one from which the run resumes
        state: what it holds
        overwrite: may they be deleted?

    Raises:
        ValueError: … has later checkpoints than … (the newest is …): pass `resume='auto'` to resume from that one, or …
    """
    ...
def find_checkpoint(folder: Path, resume: Any, overwrite: bool) -> tuple[Path|None, dict[Any, Any]|None, list[Path]]:
    """Return path and state of the checkpoint to resume from, and the later ones; raises TypeError or ValueError

    Args:
        folder: with the checkpoints of the run
        resume: 'auto' for the newest, or the path of a checkpoint
        overwrite: may later ones be deleted?

    Raises:
        TypeError: `resume` must be 'auto', or the path of a checkpoint
    """
    ...
def _came_or_went(point: Any, then: Any, now: Any) -> Any:
    """Is this difference a callback of the user's that appeared, or disappeared?"""
    ...
def check_identity(path: Path, state: dict[Any, Any], now: dict[Any, Any], asked: bool) -> dict[str, str]:
    """Return what is new in this run, in words; raises ValueError if it is another run, and `asked` is False

    Args:
        path: the checkpoint
        state: what it holds
        now: the identity of the run that begins
        asked: did somebody ask for this checkpoint?

    Raises:
        ValueError: … is not the checkpoint of a run: its `identity` is …
        ValueError: … has checkpoints of another run, so this one does not resume: …. Give this run another `folder` in …
    """
    ...
_size: str
def _batch_sizes(then: Any, now: Any) -> list[Any]:
    """The batch sizes of two identities; 0 where it is not known"""
    ...
def divide_anew(learn: Learner, state: dict[Any, Any], now: dict[Any, Any]) -> None:
    """Convert the position in the epoch at hand to batches of this number of processes, and warn, if it is another one

    Args:
        learn: the Learner, in a fit
        state: of the run, which changes if the run has another number of processes now
        now: the identity of the run that begins
    """
    ...
def is_longer(learn: Learner, state: dict[Any, Any]) -> bool:
    """Return whether the fit is to be longer than that run; raises ValueError if their units differ

    Args:
        learn: the Learner, in a fit
        state: of the run that it resumes

    Raises:
        ValueError: the run of this checkpoint was to be … long, which cannot be compared with …: say how long in the …
    """
    ...
def restore_changed(learn: Learner, state: dict[Any, Any], new: dict[Any, Any]) -> None:
    """Restore `state`, except for the hyper-parameters that are new

    Args:
        learn: the Learner, in a fit that has set its hyper-parameters
        state: of the run; its part `opt` changes too
        new: the points of the identity that differ
    """
    ...
_fits: Any
_ended: dict[Any, Any]
def fit_number(learn: Learner, root: Path) -> int:
    """Return the number of this fit, from 1

    Args:
        learn: the Learner, in a fit
        root: the folder of all its fits
    """
    ...
def note_fit(learn: Learner, root: Path, n: int, ended: Path|None = None, seed: int|None = None) -> None:
    """Note that a fit has begun or ended

    Args:
        learn: the Learner, in a fit
        root: the folder of all its fits
        n: the number of this one
        ended: the folder of this fit if it has ended; None: it has begun
        seed: of its data
    """
    ...
def check_ended(folder: Path, seed: int) -> None:
    """Raise ValueError if the run in `folder` has ended in this process, and was another one

    Args:
        folder: of a finished run
        seed: of the run that begins

    Raises:
        ValueError: the run in … has ended in this process, and this one begins with other random numbers, so it is …
    """
    ...
