# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What an epoch spends on loading, forward, backward and each callback: as a table, and as a trace to look at"""
import torch
from collections.abc import Callable
from ..callback import Callback
from ..control.every import Every
from ..recorder import History
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

__all__ = ['Profile', 'ProfileCallback', 'TimerCallback']
class Row(NamedTuple):
    """What a moment is counted for"""
    stage: str
    """'train', 'valid', or '' outside of both"""
    kind: str
    """'phase', 'event' or 'callback'"""
    name: str
    """of the phase, the event or the callback"""
    event: str
    """at which the callback was called"""
_begins: dict[Any, Any]
_ends: set[Any]
_phases: list[Any]
_stages: dict[Any, Any]
_scopes: tuple[Any, ...]
_on_device: tuple[Any, ...]
class DeviceTimes:
    """How long the accelerator took from the begin of each phase to its end, by events on its stream"""
    device: torch.device
    started: Any
    pending: Any
    rows: dict[Any, Any]
    def __init__(self, device: torch.device) -> None: ...
    def mark(self) -> torch.Event:
        """An event, recorded now"""
        ...
    def switch(self, old: Row|None, new: Row|None) -> None:
        """The phase `old` ends, if it is one, and `new` begins"""
        ...
    def collect(self, wait: bool = False) -> None:
        """Take up what the device has passed; with `wait` all"""
        ...
class Profile:
    """Where the time of a run went"""
    clock: Callable[..., Any]
    max_slices: int
    device: DeviceTimes|None
    rows: dict[Any, Any]
    slices: list[Any]
    scopes: list[Any]
    dropped: int
    stage: Any
    row: Row|None
    phase: Any
    begun: Any
    since: Any
    def __init__(
        self,
        trace: int = 100000,
        clock: Callable[..., Any] = perf_counter_ns,
        device: torch.device|None = None,
    ) -> None:
        """Where the time of a run went

        Args:
            trace: slices of phases, callbacks and batches that are kept for the trace
            clock: gives the time, in nanoseconds
            device: an accelerator, whose own times are measured as well
        """
        ...
    def switch(self, row: Row|None, calls: int = 1) -> None:
        """The stopwatch moves on

        Args:
            row: from now on time is counted for this row; None: for nothing
            calls: 0: it goes on
        """
        ...
    def start(self, event: str) -> None:
        """Event `event` begins"""
        ...
    def end(self, event: str) -> None:
        """Event `event` is over"""
        ...
    def finish(self) -> None:
        """The run is over"""
        ...
    def _close(self, scope: Any) -> None: ...
    def _slice(self, row: Any, start: Any, end: Any) -> None: ...
    @property
    def seconds(self) -> float:
        """The length of the run: the sum of all rows"""
        ...
    def by(self, names: tuple[Any, ...], key: Callable[..., Any], kind: str) -> Times:
        """The rows, added up

        Args:
            names: the columns that tell the rows of the result apart
            key: `Row` -> the values of these columns; None leaves it out
            kind: 'phase', 'event' or 'callback': the calls of these are counted
        """
        ...
    def phases(self) -> Times:
        """By stage and phase. 'rest' is the loop itself, calling the callbacks, and this measurement"""
        ...
    def callbacks(self, events: bool = False) -> Times:
        """By callback, the slowest first

        Args:
            events: a row for each event that a callback heard?
        """
        ...
    def events(self) -> Times:
        """By event: calling the callbacks and what they did, the slowest first"""
        ...
    @property
    def waiting(self) -> float:
        """The part of the run that the loop spent waiting for the loaders, from 0 to 1"""
        ...
    @property
    def summary(self) -> str:
        """How long it took, how much of that was waiting for data, and what might help"""
        ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def trace(self) -> dict[Any, Any]:
        """The slices in Chrome's Trace Event Format"""
        ...
    def save(self, fname: str|Path) -> Path:
        """Write the trace to a file for Perfetto or chrome://tracing

        Args:
            fname: the file, mostly `.json`
        """
        ...
    def line(self) -> str:
        """The totals in a line"""
        ...
class ProfileCallback(Callback):
    """Measures where the time of a run goes; `learn.profiler.result` has them"""
    order: int
    name: str
    live: Any
    busy: bool
    trace: int
    clock: Callable[..., Any]
    markers: bool
    result: Profile
    def __init__(self, trace: int = 100000, clock: Callable[..., Any] = perf_counter_ns, markers: bool = False) -> None:
        """Measures where the time of a run goes; `learn.profiler.result` has them

        Args:
            trace: slices of phases, callbacks and batches that are kept for the trace
            clock: gives the time, in nanoseconds
            markers: name the callbacks' methods in profiles of `torch.profiler` too?
        """
        ...
    def wrap_handlers(self, name: str, handlers: tuple[Any, ...]) -> tuple[Any, ...]:
        """The handlers of event `name`, each with a stopwatch, between a begin and an end"""
        ...
    def _begin(self, name: Any) -> None: ...
    def _end(self, name: Any) -> None: ...
    def _timed(self, name: Any, cb: Any, f: Any) -> Any: ...
class Times(History):
    """Rows of `calls`, `seconds`, the `mean` of a call, and the `share` of the whole"""
    def cells(self) -> list[Any]:
        """As lists of strings, the names first"""
        ...
_order: list[Any]
class FirstBatches(Callback):
    """Ends training and validation after `n` batches each"""
    order: int
    n: int
    def __init__(self, n: int) -> None: ...
    def after_batch(self) -> None: ...
_groups: dict[Any, Any]
class TimerCallback(ProfileCallback):
    """Prints every so often where the time went so far: loader, forward, backward, step, validation, callbacks, rest"""
    order: int
    name: str
    modes: tuple[Any, ...]
    every: Every
    def __init__(self, every: Any = '1ep', **kwargs: Any) -> None:
        """Prints every so often where the time went so far: loader, forward, backward, step, validation, callbacks, rest

        Args:
            every: how often: text such as '10ep' or '500ba', a number of epochs, or None for at the end only
            kwargs: for `ProfileCallback`
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    def tell(self) -> None:
        """Print the totals"""
        ...
