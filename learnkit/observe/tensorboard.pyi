# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Writes all that a run logs for TensorBoard: numbers, hyper-parameters, images, texts, histograms, tables"""
from .loggers import FileLogger
from pathlib import Path
from typing import Any

__all__ = ['event_record', 'TensorBoardLogger']
def event_record(**fields: Any) -> bytes:
    """Return an event as it is written to TensorBoard's files

    Args:
        fields: of an event, as in TensorBoard's `event.proto`
    """
    ...
class TensorBoardLogger(FileLogger):
    """Writes numbers, images, texts, histograms and tables for TensorBoard (needs the package `tensorboard`)"""
    def __init__(self, log_dir: str|Path = 'runs') -> None:
        """Writes numbers, images, texts, histograms and tables for TensorBoard (needs the package `tensorboard`)

        Args:
            log_dir: the folder, relative to `learn.path`
        """
        ...
    def make_file(self) -> Any: ...
    def before_fit(self) -> None: ...
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Add a point to the curve of each number

        Args:
            metrics: numbers by name
            step: training batches so far, in all fits
        """
        ...
    def write_hparams(self, hparams: Any, step: Any) -> None: ...
    def write_media(self, kind: Any, media: Any, step: Any) -> None: ...
    def _write(self, kind: Any, values: Any, step: Any, **kwargs: Any) -> None: ...
    def _put(self, summary: Any, step: Any) -> None: ...
def _markdown(rows: Any) -> Any: ...
