# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Writes the times of a run in the Trace Event Format, for Perfetto and chrome://tracing"""
from .action_timer import ActionTimer
from typing import Any

__all__ = ['chrome_trace']
def chrome_trace(timer: ActionTimer) -> dict[Any, Any]:
    """Return the slices of a run in Chrome's Trace Event Format

    Args:
        timer: with the slices of a run

    Returns:
        for `json.dump`
    """
    ...
