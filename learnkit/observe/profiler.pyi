# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Measures what an epoch spends on loading, forward, backward, step and each callback, as a table and as a trace"""
from collections.abc import Callable
from ..callback import Callback
from .profile import Profile
from time import perf_counter_ns
from typing import Any

__all__ = ['ProfileCallback']
class ProfileCallback(Callback):
    """Profiler: measures where the time of a run goes; `learn.profiler.result` is a `Profile`"""
    name: str
    active: bool
    in_handler: bool
    max_slices: int
    clock: Callable[..., Any]
    markers: bool
    result: Profile
    def __init__(
        self,
        max_slices: int = 100000,
        clock: Callable[..., Any] = perf_counter_ns,
        markers: bool = False,
    ) -> None:
        """Profiler: measures where the time of a run goes; `learn.profiler.result` is a `Profile`

        Args:
            max_slices: the number of slices (loop actions, callbacks, batches) to keep for the trace
            clock: returns the time, in nanoseconds
            markers: mark the handlers in profiles of `torch.profiler` too, by `record_function`
        """
        ...
    def wrap_handlers(self, name: str, handlers: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the handlers of event `name`, each timed, between the start and the end of the event

        Args:
            name: the event
            handlers: pairs of a callback and its handler

        Returns:
            pairs of a callback and a function
        """
        ...
    def _start(self, name: Any) -> None: ...
    def _end(self, name: Any) -> None: ...
    def _timed(self, name: Any, cb: Any, f: Any) -> Any: ...
