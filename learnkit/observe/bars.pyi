# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Bars of tqdm and rich, and the loss as a graph that grows while it trains"""
from collections.abc import Iterator
from contextlib import contextmanager
from ..callback import Callback
from ..progress import LinesBar, TerminalBar
from typing import Any

__all__ = ['TqdmBar', 'RichBar', 'ShowGraphCallback']
@contextmanager
def needs(package: str) -> Iterator[None]:
    """Imports from the extra 'progress', with an error that says how to get it

    Args:
        package: what is imported inside the block
    """
    ...
class TqdmBar(TerminalBar):
    """A bar of tqdm for each phase, rows above it"""
    bar: Any
    tqdm: Any
    def __init__(self, n_epoch: Any = 0) -> None: ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, loss: Any = None) -> None: ...
    def erase(self) -> None: ...
    def end(self) -> None: ...
class RichBar(LinesBar):
    """Bars of rich for the epochs and the batches, and above them rows in which the best values so far are green"""
    pace: float
    bars: Any
    epochs: Any
    batches: Any
    text: Any
    head: Any
    best: dict[Any, Any]
    def __init__(self, n_epoch: Any = 0) -> None: ...
    def epoch(self, i: Any) -> None: ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, loss: Any = None) -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...
    def write(self, line: Any, table: bool = False) -> None: ...
    def _styled(self, row: Any) -> list[Any]:
        """The cells of a row as `Text`"""
        ...
    def _improves(self, name: Any, cell: Any) -> Any:
        """Is this the best value in its column so far? Not the first, which has nothing to be better than."""
        ...
class ShowGraphCallback(Callback):
    """Draws the losses of training and validation in the notebook after each epoch"""
    order: int
    modes: tuple[Any, ...]
    handle: Any
    noted: bool
    skip_start: int
    log: bool
    figsize: tuple[Any, ...]
    shows: Any
    def __init__(self, skip_start: int = 5, log: bool = False, figsize: tuple[Any, ...] = (6.0, 4.0)) -> None:
        """Draws the losses of training and validation in the notebook after each epoch

        Args:
            skip_start: batches to leave out at the beginning, where the loss would hide the rest
            log: a logarithmic loss axis
            figsize: width and height of the graph, in inches
        """
        ...
    def before_fit(self) -> None: ...
    def after_epoch(self) -> None: ...
    def picture(self) -> bytes:
        """The graph as it is now, as a PNG"""
        ...
    def cleanup(self) -> None: ...
