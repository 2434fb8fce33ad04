# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""On SIGTERM or SIGINT finish the batch, save a checkpoint, and end the process with the usual exit status"""
import signal
from ..callback import Callback
from typing import Any

__all__ = ['StopOnSignal']
def exit_exception(number: int) -> BaseException:
    """Return the exception that ends a process as this signal would: `KeyboardInterrupt` for SIGINT, else `SystemExit`

    Args:
        number: the number of a signal
    """
    ...
def to_signal(s: Any) -> signal.Signals:
    """Return the signal `s`; raises ValueError if there is no such signal

    Args:
        s: `signal.SIGTERM`, its number, or its name 'SIGTERM'

    Raises:
        ValueError: … is no signal: write signal.SIGTERM or 'SIGTERM'
    """
    ...
class StopOnSignal(Callback):
    """Ends the fit after the current batch when a signal arrives, with a checkpoint if there is a `CheckpointCallback`"""
    signals: tuple[Any, ...]
    received: Any
    fetching: Any
    old_handlers: dict[Any, Any]
    pid: Any
    def __init__(self, signals: Any = ...) -> None:
        """Ends the fit after the current batch when a signal arrives, with a checkpoint if there is a `CheckpointCallback`

        Args:
            signals: one or several, as `signal.SIGTERM` or 'SIGTERM'

        Raises:
            ValueError: no process can handle …: use a signal such as SIGTERM
        """
        ...
    def before_fit(self) -> None: ...
    def before_fetch(self) -> None: ...
    def after_fetch(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_fit(self) -> None: ...
    @property
    def _agrees(self) -> bool: ...
    def _end(self, number: Any, save: bool = False) -> None: ...
    def cleanup(self) -> None: ...
    def _receive(self, number: Any, frame: Any) -> Any: ...
    def _end_now(self, number: Any, frame: Any) -> None: ...
    def _restore_handlers(self) -> None: ...
    def _save(self, done: Any) -> None:
        """Save a checkpoint after `done` batches of this epoch"""
        ...
    def after_exception(self) -> None:
        """If the workers were ended too while the loop waited for a batch, save a checkpoint: no batch is lost"""
        ...
def _ignore(number: Any, frame: Any) -> None: ...
