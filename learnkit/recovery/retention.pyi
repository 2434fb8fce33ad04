# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Keep the newest checkpoints and the best ones, and delete the others"""
from ..control.monitor import Monitor
from pathlib import Path
from typing import Any

class Retention:
    """Keeps the newest checkpoints in a folder and the best by a monitored value, and deletes the others"""
    keep: Any
    n_best: Any
    monitor: Monitor|None
    def __init__(self, keep: int|None = 3, n_best: int = 1, monitor: Monitor|None = None) -> None:
        """Keeps the newest checkpoints in a folder and the best by a monitored value, and deletes the others

        Args:
            keep: how many of the newest to keep; None: all
            n_best: how many of the best to keep
            monitor: says which value is better; None: keep the newest only

        Raises:
            ValueError: `keep` must be a whole number, 1 or more
            ValueError: `n_best` must be a whole number, 1 or more
        """
        ...
    def best(self, folder: Path) -> list[tuple[float, Path]]:
        """Return value and path of the best checkpoints so far, the best first

        Args:
            folder: with checkpoints
        """
        ...
    def _value(self, path: Any) -> float|None: ...
    def is_best(self, folder: Path, value: float|None) -> bool:
        """Return whether a checkpoint with this value would be among the best

        Args:
            folder: with checkpoints
            value: the monitored value now; None: there is none
        """
        ...
    def prune(self, folder: Path, saved: Path|None = None) -> None:
        """Delete checkpoints that are neither among the newest nor the best, and incomplete files of killed saves

        Args:
            folder: with checkpoints
            saved: the one that was saved last, which stays in any case
        """
        ...
