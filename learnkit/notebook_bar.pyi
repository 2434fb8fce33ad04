# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Progress bars and the table in the output of a notebook's cell"""
from .display import LineDisplay
from typing import Any

__all__ = ['style', 'show_style', 'NotebookBar']
style: str
def show_style() -> None:
    """Show the style of tables and bars in this cell's output, in place of fastprogress's own"""
    ...
class NotebookBar(LineDisplay):
    """A progress bar for the epochs, the table, and a bar for the batches, in the output of a notebook's cell"""
    master: Any
    bar: Any
    left: bool
    def __init__(self, n_epoch: int = 0) -> None:
        """A progress bar for the epochs, the table, and a bar for the batches, in the output of a notebook's cell

        Args:
            n_epoch: epochs in the table; 0: there is no table
        """
        ...
    def epoch(self, i: Any) -> None: ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, note: str = '') -> None: ...
    def leave(self) -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...
    def _leave_table(self, master: Any) -> Any: ...
    def write(self, line: Any, table: bool = False) -> None: ...
    def update_graph(self, *args: Any, **kwargs: Any) -> None:
        """Draw a graph below the bars

        Args:
            args: as for `master_bar.update_graph` of fastprogress
            kwargs: the same
        """
        ...
    def show_imgs(self, *args: Any, **kwargs: Any) -> None:
        """Show images below the bars

        Args:
            args: as for `master_bar.show_imgs` of fastprogress
            kwargs: the same
        """
        ...
