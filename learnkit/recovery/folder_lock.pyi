# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Lock a folder while a run saves into it; a crash leaves no lock behind"""
from pathlib import Path
from typing import Any

fcntl: Any
_ours: set[Any]
_one: Any
def _number(path: Any) -> tuple[Any, ...]: ...
class FolderLock:
    """Locks a folder, so that another run that wants it is refused"""
    f: Any
    number: tuple[Any, ...]|None
    path: Any
    def acquire(self, folder: Path) -> None:
        """Lock `folder`; raises ValueError if another run has it

        Args:
            folder: is created
        """
        ...
    def _lock(self, f: Any) -> bool:
        """Lock the file, and write down who did; False if that is impossible here"""
        ...
    def _refuse(self, who: Any) -> None: ...
    def release(self) -> None:
        """Give the folder free"""
        ...
