# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Gradients and updates, memory, and the machine"""
from ..callback import Callback
from .observer import Observer
from pathlib import Path
from typing import Any

__all__ = ['OptimizerMonitor', 'MemoryMonitor', 'SystemMetrics', 'MemorySnapshot', 'FreeOutputs']
class OptimizerMonitor(Observer):
    """Norms of gradients, weights and updates, and the ratio of update to weight (after Composer's `OptimizerMonitor`)"""
    saves: tuple[Any, ...]
    per_layer: bool
    due: Any
    before: tuple[Any, ...]|None
    def __init__(self, every: Any = '10ba', per_layer: bool = True) -> None:
        """Norms of gradients, weights and updates, and the ratio of update to weight (after Composer's `OptimizerMonitor`)

        Args:
            every: how often; the first step is measured, and then each that follows when it is due
            per_layer: each parameter too, as `grad_norm/0.weight`? Else only all of them together
        """
        ...
    def before_fit(self) -> None: ...
    def act(self) -> None: ...
    def before_step(self) -> None: ...
    def after_cancel_step(self) -> None: ...
    def after_step(self) -> None: ...
    def cleanup(self) -> None: ...
    def _look(self) -> None: ...
    def _compare(self) -> None: ...
def _norms(ts: Any) -> Any: ...
def _psutil() -> Any: ...
class MemoryMonitor(Observer):
    """Memory in GB (10^9 bytes): of the accelerator, or of the process where there's none"""
    where: Any
    allocator: Any
    process: Any
    def before_fit(self) -> None: ...
    def measure(self) -> dict[Any, Any]:
        """`allocated`, `reserved`, their peaks since the last time, and `retries` (how often it had to free memory first); or `rss`"""
        ...
def _gpu_percent(device: Any) -> Any:
    """A function that tells how busy the GPU is, None if nobody can"""
    ...
class SystemMetrics(Observer):
    """What the machine does: how busy CPU, memory and GPU are, and megabytes a second to and from disk and network"""
    psutil: Any
    last: tuple[Any, ...]|None
    gpu: Any
    def __init__(self, every: Any = '10s') -> None:
        """What the machine does: how busy CPU, memory and GPU are, and megabytes a second to and from disk and network

        Args:
            every: how often; see `Observer`
        """
        ...
    def before_fit(self) -> None: ...
    def _totals(self) -> Any: ...
    def measure(self) -> dict[Any, Any]:
        """In percent, and in MB/s since the last time"""
        ...
class MemorySnapshot(Callback):
    """Records how CUDA memory is allocated in some batches, and whenever it runs out (Composer's `MemorySnapshot` and `OOMObserver`)"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    warned: bool
    n: int|None
    skip: int
    on_oom: bool
    max_entries: int
    folder: Path
    seen: int
    files: list[Any]
    here: Any
    def __init__(
        self,
        n: int|None = 3,
        skip: int = 1,
        on_oom: bool = True,
        max_entries: int = 100000,
        folder: str|Path = 'memory',
    ) -> None:
        """Records how CUDA memory is allocated in some batches, and whenever it runs out (Composer's `MemorySnapshot` and `OOMObserver`)

        Args:
            n: so many training batches in one snapshot; None: only when memory runs out
            skip: after so many: the first one allocates what stays
            on_oom: record all the time, and write a snapshot when an exception says that memory ran out
            max_entries: so many allocations are kept
            folder: where the files go; in the Learner's `path` if relative
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
class FreeOutputs(Callback):
    """Lets go of the predictions of a training batch as soon as there is a loss (Composer's `FreeOutputs`)"""
    order: int
    modes: tuple[Any, ...]
    run_valid: bool
    def before_fit(self) -> None: ...
    def after_loss(self) -> None: ...
