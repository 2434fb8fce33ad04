# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Numbers and images go to a file of JSON lines, or to TensorBoard"""
import torch
from collections.abc import Callable
from ..callback import Callback
from ..control.every import EveryCallback
from pathlib import Path
from typing import Any

__all__ = ['MetricsLogger', 'JsonLogger', 'TensorBoardLogger', 'ImageLogger', 'ExportAtEnd', 'torch_export']
class MetricsLogger(Callback):
    """Hands the numbers of all observers, and the Recorder's rows, to `write(metrics, step)`"""
    order: int
    modes: tuple[Any, ...]
    def write(self, metrics: dict[Any, Any], step: int) -> None:
        """Write them

        Args:
            metrics: numbers by name
            step: training batches so far
        """
        ...
    def log_metrics(self, metrics: Any, step: Any) -> None: ...
    def after_epoch(self) -> None: ...
class JsonLogger(MetricsLogger):
    """Writes a line of JSON for each row: `{"step": 10, "batch_loss": 0.5}`"""
    saves: tuple[Any, ...]
    file: Any
    pos: Any
    fname: Path
    append: bool
    def __init__(self, fname: str|Path = 'log.jsonl', append: bool = False) -> None:
        """Writes a line of JSON for each row: `{"step": 10, "batch_loss": 0.5}`

        Args:
            fname: the file, relative to `learn.path`
            append: go on in an existing file instead of starting anew
        """
        ...
    def before_fit(self) -> None: ...
    def _cut(self) -> None: ...
    def write(self, metrics: Any, step: Any) -> None: ...
    def cleanup(self) -> None: ...
    def state_dict(self) -> dict[Any, Any]:
        """How much is written"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Cut off what was written later"""
        ...
    def read_log(self) -> list[Any]:
        """The file's rows as dictionaries"""
        ...
_texts: tuple[Any, ...]
def _plain(v: Any) -> Any: ...
class TensorBoardLogger(MetricsLogger):
    """Writes all numbers, and the images of `ImageLogger`, for TensorBoard"""
    writer: Any
    log_dir: Path
    make: Any
    def __init__(self, log_dir: str|Path = 'runs') -> None:
        """Writes all numbers, and the images of `ImageLogger`, for TensorBoard

        Args:
            log_dir: the folder, relative to `learn.path`
        """
        ...
    def before_fit(self) -> None:
        """Args:
            self: better known now than at the first number
        """
        ...
    def _open(self, step: Any) -> Any: ...
    def write(self, metrics: Any, step: Any) -> None: ...
    def log_images(self, images: Any, step: Any) -> None: ...
    def cleanup(self) -> None: ...
def _summary_writer() -> Any: ...
class ImageLogger(EveryCallback):
    """Announces images every so often, by the event `log_images`"""
    order: Any
    n: int
    def __init__(self, every: Any = '1ep', f: Callable[..., Any]|None = None, n: int = 8) -> None:
        """Announces images every so often, by the event `log_images`

        Args:
            every: how often: text such as '500ba', a `Time`, a number of epochs, or a function of the Learner
            f: function of the Learner that returns images by name, each of shape (n, channels, height, width); None: the inputs
            n: how many of the inputs
        """
        ...
    def act(self) -> None: ...
    def _inputs(self) -> Any: ...
class ExportAtEnd(Callback):
    """Exports the model when the fit is over (Composer's `ExportForInferenceCallback`)"""
    order: int
    modes: tuple[Any, ...]
    fname: Path
    export: Any
    def __init__(self, fname: str|Path = 'model.pt2', export: Callable[..., Any]|None = None) -> None:
        """Exports the model when the fit is over (Composer's `ExportForInferenceCallback`)

        Args:
            fname: the file, relative to `learn.path`
            export: export(model, xb, path), for another format; None: `torch.export`
        """
        ...
    def after_fit(self) -> None: ...
def torch_export(model: torch.nn.Module, xb: tuple[Any, ...], path: str|Path) -> None:
    """Write the model with `torch.export`

    Args:
        model: in evaluation mode
        xb: what it is called with; the number of rows may be another one later
        path: the file
    """
    ...
