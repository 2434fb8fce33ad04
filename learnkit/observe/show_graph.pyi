# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Plot the losses in the notebook during training"""
from ..callback import Callback
from typing import Any

__all__ = ['ShowGraphCallback']
class ShowGraphCallback(Callback):
    """Plots the losses of training and validation in the notebook after each epoch"""
    handle: Any
    noted: bool
    skip_start: int
    log: bool
    figsize: tuple[Any, ...]
    shows: Any
    def __init__(self, skip_start: int = 5, log: bool = False, figsize: tuple[Any, ...] = (6.0, 4.0)) -> None:
        """Plots the losses of training and validation in the notebook after each epoch

        Args:
            skip_start: batches to leave out at the beginning, whose high losses would flatten the curve
            log: a logarithmic loss axis?
            figsize: width and height of the graph, in inches
        """
        ...
    def before_fit(self) -> None: ...
    def after_epoch(self) -> None: ...
    def picture(self) -> bytes:
        """Return the graph so far, as a PNG"""
        ...
    def cleanup(self) -> None: ...
