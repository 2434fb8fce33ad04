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

        Raises:
            ValueError: … is in use by another run of this process: wait until that one has ended, or use another `folder`
        """
        ...
    def _lock(self, f: Any) -> bool:
        """Lock the file, and write down who did; False if that is impossible here

        Raises:
            ValueError: … is in use by another run …: wait until that one has ended, or use another `folder`
        """
        ...
    def _refuse(self, who: Any) -> None: ...
    def release(self) -> None:
        """Give the folder free"""
        ...
