# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Export the trained model at the end of a fit, with `torch.export` or a function of your own"""
import torch
from collections.abc import Callable
from ..callback import Callback
from pathlib import Path
from typing import Any

__all__ = ['torch_export', 'ExportAtEnd']
def torch_export(model: torch.nn.Module, xb: tuple[Any, ...], path: str|Path) -> None:
    """Export a model to a file with `torch.export`; `torch.export.load(path).module()` loads it

    Args:
        model: the model, in evaluation mode
        xb: example inputs, as `learn.xb`; the batch size may differ later, other dimensions may not
        path: the file; its name usually ends in `.pt2`
    """
    ...
def _has_items(o: Any) -> Any: ...
def _twice(o: Any) -> Any:
    """Args:
        o: PyTorch takes a size of 1 for one that never differs
    """
    ...
class ExportAtEnd(Callback):
    """Exports the model at the end of a fit (Composer's `ExportForInferenceCallback`)"""
    home: Any
    fname: Path
    export: Any
    def __init__(self, fname: str|Path = 'model.pt2', export: Callable[..., Any]|None = None) -> None:
        """Exports the model at the end of a fit (Composer's `ExportForInferenceCallback`)

        Args:
            fname: the file, relative to `learn.path`
            export: `export(model, xb, path)` for another format; None: `torch_export`
        """
        ...
    def before_fit(self) -> None: ...
    def after_fit(self) -> None: ...
