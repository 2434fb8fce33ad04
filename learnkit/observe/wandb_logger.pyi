# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Logs to Weights & Biases: numbers, hyper-parameters, images, texts, tables, histograms, models"""
from collections.abc import Iterator
from .services import ServiceLogger
from pathlib import Path
from typing import Any

__all__ = ['WandbFile', 'WandbLogger']
class WandbFile:
    """The `.wandb` file of a run, which may still grow: `rows` reads what is new"""
    block: Any
    head: int
    path: Path
    pos: Any
    size: Any
    last: Any
    def __init__(self, path: Path) -> None:
        """The `.wandb` file of a run, which may still grow: `rows` reads what is new

        Args:
            path: of the file
        """
        ...
    def records(self) -> Iterator[bytes]:
        """Read the records that are new"""
        ...
    def rows(self) -> list[Any]:
        """Return the rows of the history that are new"""
        ...
class WandbLogger(ServiceLogger):
    """Logs to Weights & Biases (needs the package `wandb`); `experiment` is the run of W&B"""
    experiment: Any
    file: WandbFile|None
    project: str|None
    init: Any
    newest: Any
    def __init__(self, project: str|None = None, files: bool = False, **init: Any) -> None:
        """Logs to Weights & Biases (needs the package `wandb`); `experiment` is the run of W&B

        Args:
            project: the project; None: W&B's default
            files: keep saved models and checkpoints as artifacts?
            init: other arguments of `wandb.init`, such as `name`, `mode='offline'`, `tags`
        """
        ...
    def open(self, id: Any) -> Any: ...
    def _files(self, id: Any) -> list[Any]: ...
    def _last(self, id: Any) -> Any: ...
    def read_log(self) -> list[Any]:
        """Return the rows of the run that are on this disk"""
        ...
    def last_step(self, name: Any) -> Any: ...
    def is_safe(self, step: Any) -> Any: ...
    def write_hparams(self, hparams: Any) -> None: ...
    def write_step(self, row: Any, step: Any) -> None: ...
    def _wrapped(self, kind: Any, values: Any) -> Any: ...
    def write_file(self, path: Any) -> None: ...
    def close(self, status: Any) -> None: ...
