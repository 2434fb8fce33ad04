# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""All that a run needs to go on, in a file that is whole or is not there, and that runs no code when it is read"""
from pathlib import Path
from typing import Any

__all__ = ['write_checkpoint', 'checkpoint_info', 'read_checkpoint', 'checkpoints', 'newest_checkpoint',
           'remove_checkpoint']
def plain(o: Any, at: str = '', copy: bool = False) -> Any:
    """`o` in tensors, numbers, texts, lists, tuples and dicts alone. Raises TypeError for anything else, and says where it is.

    Args:
        o: nested containers of tensors, numbers and texts
        at: where it is, for the message
        copy: copy tensors to the CPU, so that training can go on and change them
    """
    ...
version: int
_parts: dict[Any, Any]
class _Hashed:
    """A file that is hashed as it is written"""
    f: Any
    sha: Any
    size: int
    def __init__(self, f: Any) -> None: ...
    def write(self, b: Any) -> Any: ...
    def flush(self) -> None: ...
def _note(path: Any) -> Any: ...
def _sum(note: Any) -> Any: ...
def write_checkpoint(state: dict[Any, Any], path: Path, **info: Any) -> Path:
    """Write a checkpoint: the data first, and when it is on the disk, the note that it is whole. Returns its path, another if there is one at `path`.

    Args:
        state: from `Learner.run_state`
        path: the file, ending in .pth
        info: what else the .json beside it is to say; numbers and texts
    """
    ...
def checkpoint_info(path: Path) -> dict[Any, Any]:
    """What the .json beside a checkpoint says. Raises ValueError if there is none, or it cannot be read.

    Args:
        path: of the checkpoint, .pth
    """
    ...
def read_checkpoint(path: Path) -> dict[Any, Any]:
    """The state in a checkpoint. Raises ValueError if a byte of it differs from what was written.

    Args:
        path: of the checkpoint, .pth
    """
    ...
def checkpoints(folder: Path) -> list[Any]:
    """The checkpoints in a folder, the newest first; not yet checked

    Args:
        folder: where to look
    """
    ...
def _age(path: Any) -> list[Any]:
    """Args:
        path: epoch 10 comes after epoch 9
    """
    ...
def newest_checkpoint(folder: Path) -> tuple[Any, ...]:
    """`(path, state)` of the newest checkpoint that is whole; warns of newer ones that are not; `(None, None)` if there is none

    Args:
        folder: where to look
    """
    ...
def remove_checkpoint(path: Path) -> None:
    """Delete a checkpoint: the note first, so that half a deletion does not look like a checkpoint

    Args:
        path: of the checkpoint, .pth
    """
    ...
