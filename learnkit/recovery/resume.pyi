# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Find the checkpoint from which a run resumes, and make sure that old and new checkpoints are not mixed up"""
from pathlib import Path
from typing import Any

def clear_folder(folder: Path, overwrite: bool) -> None:
    """Make sure that `folder` has no checkpoints: deletes them if `overwrite` is True, else raises ValueError

    Args:
        folder: for the checkpoints of a new run
        overwrite: delete those of an earlier run?
    """
    ...
def later_checkpoints(folder: Path, path: Path, state: dict[Any, Any], overwrite: bool) -> list[Path]:
    """Return the checkpoints of later batches than this one; raises ValueError if there are any and `overwrite` is False

    Args:
        folder: with checkpoints
        path: the one from which the run resumes
        state: what it holds
        overwrite: may they be deleted?
    """
    ...
def find_checkpoint(folder: Path, resume: Any, overwrite: bool) -> tuple[Path|None, dict[Any, Any]|None, list[Path]]:
    """Return path and state of the checkpoint to resume from, and the later ones; raises TypeError or ValueError

    Args:
        folder: with the checkpoints of the run
        resume: 'auto' for the newest, or the path of a checkpoint
        overwrite: may later ones be deleted?
    """
    ...
