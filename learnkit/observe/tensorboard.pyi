# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Writes the numbers and images of a run for TensorBoard"""
from .loggers import MetricsLogger
from pathlib import Path
from typing import Any

__all__ = ['TensorBoardLogger']
class TensorBoardLogger(MetricsLogger):
    """Writes all numbers, and the images of `ImageLogger`, for TensorBoard (needs the package `tensorboard`)"""
    writer: Any
    log_dir: Path
    make_writer: Any
    def __init__(self, log_dir: str|Path = 'runs') -> None:
        """Writes all numbers, and the images of `ImageLogger`, for TensorBoard (needs the package `tensorboard`)

        Args:
            log_dir: the folder, relative to `learn.path`
        """
        ...
    def before_fit(self) -> None:
        """Args:
            self: if the package is missing it fails now, not later
        """
        ...
    def _open(self, step: Any) -> Any: ...
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Add a point to the curve of each number

        Args:
            metrics: numbers by name
            step: training batches so far
        """
        ...
    def log_images(self, images: dict[Any, Any], step: int) -> None:
        """Add the images of an `ImageLogger`

        Args:
            images: batches of images by name
            step: training batches so far
        """
        ...
    def cleanup(self) -> None: ...
def _summary_writer() -> type[Any]: ...
