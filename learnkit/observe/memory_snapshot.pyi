# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Records which line of code allocated which CUDA memory, and writes a snapshot file when memory runs out"""
from ..callback import Callback
from pathlib import Path
from typing import Any

__all__ = ['MemorySnapshot']
class MemorySnapshot(Callback):
    """Records CUDA memory allocations, of some batches and when memory runs out (Composer's `MemorySnapshot`)"""
    warned: bool
    n: int|None
    skip: int
    on_oom: bool
    max_entries: int
    folder: Path
    n_batches: int
    files: list[Any]
    available: Any
    home: Any
    def __init__(
        self,
        n: int|None = 3,
        skip: int = 1,
        on_oom: bool = True,
        max_entries: int = 100000,
        folder: str|Path = 'memory',
    ) -> None:
        """Records CUDA memory allocations, of some batches and when memory runs out (Composer's `MemorySnapshot`)

        Args:
            n: the number of training batches in the snapshot; None: only when memory runs out
            skip: the number of training batches before it: the first one allocates what stays
            on_oom: record the whole fit, and write a snapshot when memory runs out
            max_entries: the number of allocations to keep
            folder: folder of the files, relative to the Learner's `path`

        Raises:
            ValueError: `n` must be a whole number, 1 or more
            ValueError: `skip` must be a whole number, 0 or more
            ValueError: `max_entries` must be a whole number, 1 or more
            ValueError: MemorySnapshot(n=None, on_oom=False) records nothing: give a number of batches, or on_oom=True
        """
        ...
    def before_fit(self) -> None: ...
    def before_fetch(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
    def _record(self) -> None: ...
    def _stop(self) -> None: ...
    def _write(self, what: Any) -> None: ...
