# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write the numbers of a run to a file of JSON lines; base classes for other files and services"""
from ..callback import Callback
from .log_file import LogFile
from pathlib import Path
from typing import Any

__all__ = ['MetricsLogger', 'FileLogger', 'JsonLogger']
class MetricsLogger(Callback):
    """Base class of loggers: passes all numbers, and the rows of the history, to `write(metrics, step)`, in order"""
    last: Any
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Write `metrics`; raises NotImplementedError unless a subclass defines it

        Args:
            metrics: numbers by name
            step: training batches so far, in all fits

        Raises:
            NotImplementedError: … needs a method `write(self, metrics, step)`
        """
        ...
    def write_row(self, row: dict[Any, Any], step: int) -> None:
        """Write the numbers of a row of the history

        Args:
            row: of the history
            step: training batches so far, in all fits
        """
        ...
    def log_metrics(self, metrics: dict[Any, Any], step: int) -> None:
        """Pass `metrics` to `write`, in the main process only; raises ValueError if `step` goes back

        Args:
            metrics: numbers by name
            step: training batches so far, in all fits
        """
        ...
    def log_media(self, kind: str, media: dict[Any, Any], step: int) -> None:
        """Pass `media` to `write_media`, in the main process only; raises ValueError if `step` goes back

        Args:
            kind: 'texts', 'images', 'histograms' or 'tables'
            media: what was logged, by name
            step: training batches so far, in all fits
        """
        ...
    def write_media(self, kind: str, media: dict[Any, Any], step: int) -> None:
        """Write `media`; leaves them out unless a subclass defines it

        Args:
            kind: 'texts', 'images', 'histograms' or 'tables'
            media: what was logged, by name: texts, tensors on the CPU, lists of dictionaries
            step: training batches so far, in all fits
        """
        ...
    def counts(self, step: int) -> bool:
        """Return whether this is the process that writes; raises ValueError if `step` goes back

        Args:
            step: training batches so far, in all fits

        Raises:
            ValueError: step … was logged after step …, but the steps of a log only grow: `learn.log_numbers(metrics)` …
        """
        ...
    def before_fit(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def after_epoch(self) -> None: ...
    def _pass_row(self, row: Any) -> None: ...
    def after_fit(self) -> None: ...
    after_exception = after_fit
    before_save_checkpoint = after_fit
    def cleanup(self) -> None: ...
    @property
    def start(self) -> int:
        """The training batches of the fits before this one"""
        ...
    @start.setter
    def start(self, n: int) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Go on from `state`; what this fit has logged so far is dropped, as the log has it already

        Args:
            state: from `state_dict`
        """
        ...
class FileLogger(MetricsLogger):
    """Base class of loggers that write a file: they pass whole rows to `log_file.write`"""
    fname: Path
    append: bool
    def __init__(self, fname: str|Path, append: bool = False) -> None:
        """Base class of loggers that write a file: they pass whole rows to `log_file.write`

        Args:
            fname: the file, relative to `learn.path`
            append: go on with a file of an earlier run? False: replace it
        """
        ...
    @property
    def path(self) -> Path:
        """The path of the file"""
        ...
    def make_file(self) -> LogFile:
        """Return the file of a new log"""
        ...
    @property
    def log_file(self) -> LogFile:
        """The file, which all loggers of this Learner with the same path share"""
        ...
    def before_fit(self) -> None: ...
    def before_epoch(self) -> None: ...
    def _begin(self) -> None: ...
    def write_hparams(self, hparams: dict[Any, Any], step: int) -> None:
        """Write what the run trains with, at the beginning of the file; does nothing unless a subclass defines it

        Args:
            hparams: numbers and short texts by name
            step: the training batches of earlier fits
        """
        ...
    def counts(self, step: Any) -> Any: ...
    def log_metrics(self, metrics: Any, step: Any) -> None: ...
    def log_media(self, kind: Any, media: Any, step: Any) -> None: ...
    def before_save_checkpoint(self) -> None: ...
    def cleanup(self) -> None: ...
    def check_exists(self) -> None:
        """Raise FileNotFoundError if there is no file yet

        Raises:
            FileNotFoundError: there is no log at … yet: it is written by `learn.fit`
        """
        ...
class JsonLogger(FileLogger):
    """Writes each row of numbers as a line of JSON: `{"step": 10, "batch_loss": 0.5}`"""
    def __init__(self, fname: str|Path = 'log.jsonl', append: bool = False) -> None:
        """Writes each row of numbers as a line of JSON: `{"step": 10, "batch_loss": 0.5}`

        Args:
            fname: the file, relative to `learn.path`
            append: go on with a file of an earlier run? False: replace it
        """
        ...
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Write a line

        Args:
            metrics: numbers by name
            step: training batches so far, in all fits
        """
        ...
    def write_hparams(self, hparams: Any, step: Any) -> None: ...
    def write_media(self, kind: Any, media: Any, step: Any) -> None: ...
    def read_log(self) -> list[Any]:
        """Return the rows, without `hparams`; raises FileNotFoundError if there is no file, ValueError for a damaged one

        Raises:
            FileNotFoundError: there is no log at … yet: it is written by `learn.fit`
            ValueError: … is no JSON: …
            ValueError: … is no row of numbers such as {"step": 10}: …
        """
        ...
_non_finite: tuple[Any, ...]
def _encode(v: Any) -> Any: ...
def _decode(line: Any, where: Any) -> dict[Any, Any]: ...
