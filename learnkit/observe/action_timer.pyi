# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Times the actions of the loop, each event and each callback, so that the times add up to the whole run"""
import torch
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

__all__ = ['ActionTimer']
class Action(NamedTuple):
    """The action that a moment of a run is counted for"""
    phase: str
    """'train', 'valid', or '' outside of both"""
    kind: str
    """'loop' (a part of the loop between two events), 'event' or 'callback'"""
    name: str
    """of the part of the loop, the event, or the callback"""
    event: str = ...
    """the event at which the callback was called"""
_starts: dict[Any, Any]
_closed: Any
_ends: set[Any]
loop_actions: list[Any]
_phases: dict[Any, Any]
_scopes: tuple[Any, ...]
_on_device: tuple[Any, ...]
class DeviceTimer:
    """Times how long the accelerator works on each action, with events on its stream; waits only at the end"""
    device: torch.device
    start: Any
    pending: Any
    seconds: dict[Any, Any]
    def __init__(self, device: torch.device) -> None:
        """Times how long the accelerator works on each action, with events on its stream; waits only at the end

        Args:
            device: the accelerator
        """
        ...
    def record(self) -> torch.Event:
        """Record an event on the stream now"""
        ...
    def switch(self, old: Action|None, new: Action|None) -> None:
        """Time the action `new` from now on, and no longer `old`

        Args:
            old: ends now
            new: starts now
        """
        ...
    def collect(self, wait: bool = False) -> None:
        """Add the times of finished actions to `seconds`

        Args:
            wait: wait for the device? Otherwise only the actions that it has finished are counted
        """
        ...
class ActionTimer:
    """Times a run: counts each moment for one action, which is a part of the loop, an event, or a callback"""
    clock: Callable[..., Any]
    max_slices: int
    device: DeviceTimer|None
    totals: dict[Any, Any]
    slices: list[Any]
    scopes: list[Any]
    dropped: int
    phase: Any
    action: Action|None
    loop_action: Any
    start_time: Any
    since: Any
    workers: dict[str, int|None]
    def __init__(
        self,
        max_slices: int = 100000,
        clock: Callable[..., Any] = perf_counter_ns,
        device: torch.device|None = None,
    ) -> None:
        """Times a run: counts each moment for one action, which is a part of the loop, an event, or a callback

        Args:
            max_slices: the number of slices (loop actions, callbacks, batches) to keep for the trace
            clock: returns the time, in nanoseconds
            device: an accelerator whose own times are measured too; None or 'cpu': only the host
        """
        ...
    def switch(self, action: Action|None, calls: int = 1) -> None:
        """Count the time from now on for `action`

        Args:
            action: counted from now on; None: nothing is
            calls: 0 if the action continues after an interruption
        """
        ...
    def start(self, event: str) -> None:
        """Count the time from now on for `event`; time its scope too, such as a batch, if it begins one

        Args:
            event: the name of an event whose callbacks are called next
        """
        ...
    def end(self, event: str) -> None:
        """Count the time from now on for the part of the loop that follows `event`

        Args:
            event: the name of an event whose callbacks were called
        """
        ...
    def finish(self) -> None:
        """Stop counting at the end of the run, and wait for the times of the device"""
        ...
    def _close(self, scope: Any) -> None:
        """Close the open scopes up to `scope`; None: all"""
        ...
    def _add_slice(self, action: Any, start: Any, end: Any) -> None: ...
