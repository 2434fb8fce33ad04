# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Logs the memory of the accelerator or the process, and how busy CPU, GPU, disk and network are"""
import torch
from collections.abc import Callable
from .observer import Observer
from types import ModuleType
from typing import Any

__all__ = ['MemoryMonitor', 'SystemMetrics']
def _psutil(what: str) -> ModuleType: ...
class MemoryMonitor(Observer):
    """Logs the memory in use, in GB (10^9 bytes): of the accelerator, or without one of the process (needs psutil)"""
    where: Any
    allocates: bool
    process: Any
    def before_fit(self) -> None: ...
    def measure(self) -> dict[Any, Any]:
        """Return `allocated`, `reserved`, their peaks since the last row, and `retries` (to allocate); on the CPU `rss`

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
class SystemMetrics(Observer):
    """Logs the utilization of CPU, memory and GPU in percent, and disk and network traffic in MB/s (needs psutil)"""
    psutil: Any
    gpu_percent: Any
    last: tuple[Any, ...]
    def __init__(self, every: Any = '10s') -> None:
        """Logs the utilization of CPU, memory and GPU in percent, and disk and network traffic in MB/s (needs psutil)

        Args:
            every: how often; see `Observer`
        """
        ...
    def before_fit(self) -> None: ...
    def _totals(self) -> Any: ...
    def measure(self) -> dict[Any, Any]:
        """Return `cpu_percent`, `memory_percent`, `gpu_percent` (NVIDIA), and `disk_read_mb_per_sec` and its like

        Args:
            self: numbers by name: floats, or tensors of one element; None if there are none yet
        """
        ...
def _gpu_percent(device: torch.device) -> Callable[..., Any]|None: ...
