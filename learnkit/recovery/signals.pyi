# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A request to stop is answered between two batches, with a checkpoint"""
import signal
from ..callback import Callback
from typing import Any

__all__ = ['StopOnSignal']
def ending(number: int) -> BaseException:
    """The exception that ends a process as this signal would: `KeyboardInterrupt` for SIGINT, else `SystemExit` with the status 128 + `number`

    Args:
        number: of the signal
    """
    ...
def as_signal(s: Any) -> signal.Signals:
    """A signal, given as such, as its number, or as its name"""
    ...
class StopOnSignal(Callback):
    """Ends the fit after the batch at hand when a signal asks for it, with a checkpoint if there is a `CheckpointCallback`"""
    order: int
    modes: tuple[Any, ...]
    signals: tuple[Any, ...]
    heard: Any
    fetching: Any
    old: dict[Any, Any]
    pid: Any
    def __init__(self, signals: Any = ...) -> None:
        """Ends the fit after the batch at hand when a signal asks for it, with a checkpoint if there is a `CheckpointCallback`

        Args:
            signals: which, as `signal.SIGTERM` or 'SIGTERM'
        """
        ...
    def before_fit(self) -> None: ...
    def before_fetch(self) -> None: ...
    def after_fetch(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_fit(self) -> None: ...
    def cleanup(self) -> None: ...
    def _hear(self, number: Any, frame: Any) -> None: ...
    def _put_back(self) -> None: ...
    def _save(self, done: Any) -> Any:
        """A checkpoint after so many batches of this epoch"""
        ...
    def after_exception(self) -> None:
        """The workers were ended together with this process: if the next batch had not come yet, none is lost"""
        ...
def _nothing(number: Any, frame: Any) -> None: ...
