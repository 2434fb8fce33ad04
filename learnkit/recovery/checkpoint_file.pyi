# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write, read, list and remove checkpoint files: complete or absent, with a checksum, read without running code"""
from pathlib import Path
from typing import Any

__all__ = ['write_checkpoint', 'remove_checkpoint', 'checkpoint_info', 'read_checkpoint', 'list_checkpoints',
           'newest_checkpoint', 'train_iter_of']
class _HashingFile:
    """A file that computes its SHA-256 and its size while it is written"""
    f: Any
    sha: Any
    size: int
    def __init__(self, f: Any) -> None: ...
    def flush(self) -> None: ...
    def write(self, b: Any) -> Any: ...
def _manifest(path: Any) -> Any: ...
def _shards(path: Any) -> Any: ...
def _checksum(info: Any) -> Any: ...
def write_checkpoint(state: dict[Any, Any], path: Path, **info: Any) -> Path:
    """Write a checkpoint, and its manifest when it is on the disk; returns its path, a new one if `path` is taken

    Args:
        state: what `Learner.run_state` returned
        path: the file, ending in .pth
        info: what else the manifest contains: numbers, strings, tensors, and lists and dicts of them
    """
    ...
def _place(path: Any) -> tuple[Any, ...]:
    """Where to write, with no manifest there, and the checkpoint that is to go then"""
    ...
def _write_rest(state: Any, path: Any, info: Any) -> None: ...
def _write_together(rest: Any, parts: Any, path: Any, info: Any) -> Any:
    """All processes write their parts, then process 0 the rest, and the manifest last"""
    ...
def _write_both(state: Any, path: Any, note: Any) -> None: ...
def _for_json(o: Any) -> Any:
    """`o` as it is read again from JSON: keys are texts, tensors lists"""
    ...
def remove_checkpoint(path: Path) -> None:
    """Delete a checkpoint: first the manifest, so that half a deletion does not look like a checkpoint

    Args:
        path: the checkpoint, ending in .pth
    """
    ...
def checkpoint_info(path: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint; raises ValueError if there is none, or it cannot be read

    Args:
        path: the checkpoint, ending in .pth

    Raises:
        ValueError: … is no checkpoint: …
        ValueError: … is damaged: …
        ValueError: … is not the manifest of a checkpoint
        ValueError: … is damaged: its checksum is wrong
    """
    ...
def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the state in a checkpoint; raises ValueError if a byte of it is not what was written

    Args:
        path: the checkpoint, ending in .pth

    Raises:
        ValueError: … is missing, though ….json says that it was written
        ValueError: … has … bytes, and … were written
        ValueError: … is damaged: its SHA-256 is ……, and that of what was written is ……
    """
    ...
def _age(path: Any) -> list[Any]: ...
def list_checkpoints(folder: Path) -> list[Path]:
    """Return the paths of the checkpoints in a folder, the newest first; what is in them is not checked

    Args:
        folder: where to look
    """
    ...
def newest_checkpoint(folder: Path, set_aside: bool = False) -> tuple[Path, dict[Any, Any]]|tuple[None, None]:
    """Return path and state of the newest checkpoint that can be read, None for both without one; warns of damaged ones

    Args:
        folder: where to look
        set_aside: rename those that cannot be read to `damaged-…`?
    """
    ...
def _set_aside(path: Any) -> Any:
    """Rename a checkpoint that cannot be read; the manifest first, so that it is a checkpoint no more"""
    ...
def train_iter_of(path: Path) -> int:
    """Return the number of training batches in the name of a checkpoint

    Args:
        path: of a checkpoint
    """
    ...
