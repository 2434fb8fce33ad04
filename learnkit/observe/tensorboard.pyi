# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Writes the numbers and images of a run for TensorBoard"""
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
    """Writes all numbers, and the images of `ImageLogger`, for TensorBoard (needs the package `tensorboard`)"""
    def __init__(self, log_dir: str|Path = 'runs') -> None:
        """Writes all numbers, and the images of `ImageLogger`, for TensorBoard (needs the package `tensorboard`)

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
    def log_images(self, images: dict[Any, Any], step: int) -> None:
        """Add the images of an `ImageLogger`

        Args:
            images: batches of images by name
            step: training batches so far, in all fits
        """
        ...
    def _write(self, kind: Any, values: Any, step: Any) -> None: ...
