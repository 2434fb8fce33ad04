# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A bar and a table while it trains, in a notebook, in a terminal and in a log file; and a CSV file"""
from .callback import Callback
from .history import History
from pathlib import Path
from typing import Any

__all__ = ['bar_kinds', 'TerminalBar', 'NotebookBar', 'ProgressCallback', 'CSVLogger']
def display_kind() -> str:
    """Where the output goes: 'notebook', 'terminal', or 'lines' for all else"""
    ...
class LinesBar:
    """No bar: rows as plain lines, and a sign of life now and then"""
    pace: float
    n_epoch: int
    widths: Any
    what: str
    n: int|None
    start: Any
    def __init__(self, n_epoch: int = 0) -> None:
        """No bar: rows as plain lines, and a sign of life now and then

        Args:
            n_epoch: epochs that the table is for; 0: there is none
        """
        ...
    def epoch(self, i: int) -> None:
        """Epoch `i` begins"""
        ...
    def begin(self, what: str, n: int|None) -> None:
        """Begin with a bar

        Args:
            what: what the bar is for, such as 'Epoch 1/3 train'
            n: batches; None: nobody knows
        """
        ...
    def update(self, i: int, loss: float|None = None) -> None:
        """Show how far it is

        Args:
            i: batches that are done
            loss: shown beside the bar
        """
        ...
    def end(self) -> None:
        """Be done with the bar that began last"""
        ...
    def close(self) -> None:
        """Be done with everything"""
        ...
    def write(self, line: str|list[Any], table: bool = False) -> None:
        """Write a line

        Args:
            line: a text or, with `table`, the cells of a row; the first row is the head
            table: a row of the table?
        """
        ...
    def columns(self, row: list[Any]) -> list[Any]:
        """The cells of a row, as wide as those of the head"""
        ...
    def update_graph(self, *args: Any, **kwargs: Any) -> None:
        """There are graphs in notebooks only"""
        ...
    def show_imgs(self, *args: Any, **kwargs: Any) -> None:
        """There are images in notebooks only"""
        ...
class Above:
    """A stand-in for `sys.stdout` or `sys.stderr`: what others write goes above the bar"""
    out: Any
    bar: Any
    def __init__(self, out: Any, bar: Any) -> None: ...
    def write(self, s: str) -> int:
        """Write `s`, in place of the bar if there is one"""
        ...
class TerminalBar(LinesBar):
    """A bar on the last line of a terminal, rows above it"""
    pace: float
    active: bool
    midline: bool
    drawn: int
    fill: str
    bar: Any
    out: Any
    def begin(self, what: Any, n: Any) -> None: ...
    def watch(self) -> None:
        """Let what others write go above the bar, until `end`"""
        ...
    def update(self, i: Any, loss: Any = None) -> None: ...
    def draw(self, i: int, text: str) -> None:
        """Draw the bar over the one before; not while someone else's line is unfinished

        Args:
            i: batches that are done
            text: percentage and times
        """
        ...
    def erase(self) -> None:
        """Leave an empty line"""
        ...
    def _put(self, s: Any) -> None: ...
    def end(self) -> None: ...
class NotebookBar(LinesBar):
    """A bar for the epochs, the table, and a bar for the batches, in the output of a notebook's cell"""
    pace: float
    master: Any
    bar: Any
    def __init__(self, n_epoch: Any = 0) -> None: ...
    def epoch(self, i: Any) -> None: ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, loss: Any = None) -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...
    def _leave_table(self, master: Any) -> Any: ...
    def write(self, line: Any, table: bool = False) -> None: ...
    def update_graph(self, *args: Any, **kwargs: Any) -> None: ...
    def show_imgs(self, *args: Any, **kwargs: Any) -> None: ...
bar_kinds: dict[Any, Any]
class ProgressCallback(Callback):
    """Shows a progress bar and a table of the Recorder's rows; plain lines where there's no terminal"""
    order: int
    nested: bool
    kind: Any
    mbar: Any
    due: Any
    asked: str|None
    pace: float|None
    step: Any
    def __init__(self, kind: str|None = None, every: float|None = None) -> None:
        """Shows a progress bar and a table of the Recorder's rows; plain lines where there's no terminal

        Args:
            kind: a name in `bar_kinds`: 'notebook', 'terminal', 'lines'; None: what the output is
            every: seconds between two drawings; None: 0.2, in lines 30
        """
        ...
    def before_fit(self) -> None: ...
    def _bar(self) -> Any: ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _begin(self, phase: Any) -> None: ...
    def after_batch(self) -> None: ...
    def _end(self) -> None: ...
    after_train = _end
    after_validate = _end
    after_cancel_epoch = _end
    after_cancel_fit = _end
    def cleanup(self) -> None: ...
    after_fit = cleanup
    def _write(self, row: Any) -> None: ...
class CSVLogger(Callback):
    """Writes the Recorder's rows to a CSV file, each when its epoch ends"""
    order: int
    modes: tuple[Any, ...]
    file: Any
    fname: Path
    append: bool
    def __init__(self, fname: str|Path = 'history.csv', append: bool = False) -> None:
        """Writes the Recorder's rows to a CSV file, each when its epoch ends

        Args:
            fname: the file, relative to `learn.path`
            append: go on in an existing file instead of starting anew
        """
        ...
    def before_fit(self) -> None: ...
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _row(self, row: Any) -> None: ...
    def read_log(self) -> History:
        """The file's rows, with numbers as numbers and empty cells as None"""
        ...
def _value(s: Any) -> Any: ...
