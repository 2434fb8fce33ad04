# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Shows the times of a run by action of the loop, by callback and by event, and the time spent waiting for data"""
from collections.abc import Callable
from ..history import History
from .action_timer import ActionTimer
from pathlib import Path
from typing import Any

__all__ = ['Profile']
class TimeTable(History):
    """Rows of `calls`, total `seconds`, `mean` seconds of a call, and `share` of the run (0 to 1)"""
    def cells(self) -> list[Any]:
        """Return the cells of the table, the column names first"""
        ...
class Profile(ActionTimer):
    """Shows where the time of a run went, as tables and as a trace; `learn.profile()` returns it"""
    @property
    def seconds(self) -> float:
        """The length of the run: the sum of all times"""
        ...
    def actions(self) -> TimeTable:
        """Return the times by phase and action of the loop; 'rest' is the loop itself, calls of callbacks, the profiler"""
        ...
    def callbacks(self, events: bool = False) -> TimeTable:
        """Return the times by callback, the slowest first

        Args:
            events: a row for each event that a callback handles? Otherwise one for each callback
        """
        ...
    def events(self) -> TimeTable:
        """Return the times by event, its callbacks included, the slowest first"""
        ...
    def _aggregate(self, names: tuple[Any, ...], key: Callable[..., Any], kind: str) -> TimeTable:
        """Return the totals, added up by `key`

        Args:
            names: the columns that identify a row of the result
            key: Action -> the values of these columns; None leaves the action out
            kind: the calls of actions of this kind are counted
        """
        ...
    @property
    def wait_fraction(self) -> float:
        """The fraction of the run that the loop spent waiting for the loaders, from 0 to 1"""
        ...
    @property
    def summary(self) -> str:
        """How long the run took, how much of that was waiting for data, and what helps where it is a tenth or more"""
        ...
    def _hint(self) -> Any:
        """What helps in the phase that waits longest"""
        ...
    def one_line(self) -> str:
        """Return the totals in one line: loader, forward, backward, step, validation, callbacks, rest"""
        ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def trace(self) -> dict[Any, Any]:
        """Return the slices of the run in Chrome's Trace Event Format"""
        ...
    def save(self, fname: str|Path) -> Path:
        """Write the trace to a file for Perfetto (ui.perfetto.dev) or chrome://tracing; returns its path

        Args:
            fname: the file; its name ends in `.json`
        """
        ...
_groups: dict[Any, Any]
