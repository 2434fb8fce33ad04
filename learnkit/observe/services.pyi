# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Base class of loggers for services such as Weights & Biases, MLflow, Comet or Aim; one takes ten lines"""
from .loggers import MetricsLogger
from .sender import Sender
from pathlib import Path
from typing import Any

__all__ = ['Service', 'ServiceLogger']
class Service(MetricsLogger):
    """Describes a service to `ServiceLogger`: `open` and `write` are needed, the rest has defaults"""
    id: str|None
    """of the run at the service"""
    at_once: int
    """steps that `write_steps` is called with, at most"""
    def open(self, id: str|None) -> str:
        """Begin a run at the service, or go on with one; returns its id. Raises NotImplementedError unless defined

        Args:
            id: of the run to go on with; None: a new one

        Raises:
            NotImplementedError: … needs a method `open(self, id)` that returns the id of a run
        """
        ...
    def last_step(self, name: str) -> int:
        """Return the last step of which the service has this number; -1 if there is none, or nobody knows

        Args:
            name: of a number
        """
        ...
    def is_safe(self, step: int) -> bool:
        """Return whether `step` would still be there if this process were killed now

        Args:
            step: that was sent
        """
        ...
    def write_hparams(self, hparams: dict[Any, Any]) -> None:
        """Send what the run trains with; leaves it out unless a subclass defines it

        Args:
            hparams: numbers and short texts by name
        """
        ...
    def write_file(self, path: Path) -> None:
        """Send a file; leaves it out unless a subclass defines it

        Args:
            path: of a saved model or checkpoint
        """
        ...
    def close(self, status: str) -> None:
        """Tell the service how the fit ended, 'killed' if another Learner goes on; does nothing unless defined

        Args:
            status: 'finished', 'failed' or 'killed'
        """
        ...
    def write_step(self, row: dict[Any, Any], step: int) -> None:
        """Send all of a step: calls `write_media` for each kind, and then `write` for the numbers

        Args:
            row: numbers as 'metrics', and 'texts', 'images', 'histograms', 'tables', each by name
            step: training batches so far, in all fits
        """
        ...
    def write_steps(self, rows: list[Any]) -> None:
        """Send steps: calls `write_step` for each

        Args:
            rows: pairs of step and row, `at_once` of them at most, in order
        """
        ...
class ServiceLogger(Service):
    """Base class of loggers for services: sends each step once, in a thread, and holds what can't be sent"""
    wait: float
    files: bool
    opened: bool
    warned: bool
    asks: bool
    row: Any
    row_step: Any
    there: dict[Any, Any]
    paths: tuple[Any, ...]
    _sender: Sender|None
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def log_metrics(self, metrics: Any, step: Any) -> None: ...
    def log_media(self, kind: Any, media: Any, step: Any) -> None: ...
    def after_save_checkpoint(self, path: Any) -> None: ...
    after_save_model = after_save_checkpoint
    def cleanup(self) -> None: ...
    @property
    def sender(self) -> Sender:
        """The thread that sends"""
        ...
    @property
    def kept(self) -> list[Any]:
        """What the service may not have yet: pairs of step and row"""
        ...
    @kept.setter
    def kept(self, rows: list[Any]) -> None: ...
    def load_state_dict(self, state: Any) -> None: ...
    def after_load_checkpoint(self, path: Any) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def _collect(self, kind: Any, values: Any, step: Any) -> None: ...
    def _push(self) -> None:
        """Put the collected step into the thread"""
        ...
    def _finish(self, status: Any) -> Any:
        """Send what is left and how it ended; what can't be sent is put into a file"""
        ...
    def _ask(self) -> None: ...
    def _open(self) -> None:
        """Open the run at the service, unless it is open; in the thread, or before the first epoch"""
        ...
    def _take(self) -> None: ...
    def _send(self, *things: Any) -> Any:
        """Send the first of `things`, or all steps before the next file or end; returns how many"""
        ...
    def _lacking(self, step: Any, row: Any) -> dict[Any, Any]:
        """What of `row` the service does not have"""
        ...
def _line(step: Any, row: Any) -> Any: ...
