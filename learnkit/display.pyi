# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Where progress is shown: in a notebook, in a terminal, or as plain lines in a log file"""
from .text_table import TextTable
from typing import Any

__all__ = ['LineDisplay']
def display_kind() -> str:
    """Return where the output goes: 'notebook', 'terminal', or 'lines' for everything else"""
    ...
class LineDisplay:
    """Progress as plain lines of text: one for each row, and one every 30 seconds"""
    pace: float
    n_epoch: int
    table: TextTable|None
    what: str
    n: int|None
    start: Any
    def __init__(self, n_epoch: int = 0) -> None:
        """Progress as plain lines of text: one for each row, and one every 30 seconds

        Args:
            n_epoch: epochs in the table; 0: there is no table
        """
        ...
    def epoch(self, i: int) -> None:
        """An epoch begins

        Args:
            i: number of the epoch, from 0
        """
        ...
    def begin(self, what: str, n: int|None) -> None:
        """Begin a progress bar, for one phase of an epoch

        Args:
            what: what the bar is for, such as 'Epoch 1/3 train'
            n: number of batches; None: unknown
        """
        ...
    def update(self, i: int, note: str = '') -> None:
        """Show the progress

        Args:
            i: number of batches so far
            note: shown beside the bar: 'loss 0.5031, 02:10 left'
        """
        ...
    def end(self) -> None:
        """End the progress bar that began last"""
        ...
    def leave(self) -> None:
        """Leave the bar where it stands: the run was interrupted"""
        ...
    def close(self) -> None:
        """End the display"""
        ...
    def write(self, line: str|list[Any], table: bool = False) -> None:
        """Write a line

        Args:
            line: a text or, with `table`, the cells of a row; the first row has the column names
            table: is it a row of the table?
        """
        ...
    def arranged(self, row: list[Any]) -> list[Any]:
        """Return a row as lines that are not wider than the output

        Args:
            row: the cells of a row

        Returns:
            of lines, each a list of pairs: number of a column, its padded text
        """
        ...
    def room(self) -> float:
        """Return how long a line may be"""
        ...
    def update_graph(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: only notebooks have graphs

        Args:
            args: as for `master_bar.update_graph` of fastprogress, which fastai's callbacks call
            kwargs: the same
        """
        ...
    def show_imgs(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: only notebooks have images

        Args:
            args: as for `master_bar.show_imgs` of fastprogress
            kwargs: the same
        """
        ...
