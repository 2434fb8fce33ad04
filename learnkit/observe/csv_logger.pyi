# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write the losses and metrics of each epoch to a CSV file"""
from ..history import History
from .log_file import LogFile
from .loggers import FileLogger
from pathlib import Path
from typing import Any

__all__ = ['CSVFile', 'parse_csv', 'CSVLogger']
def _line(cells: Any) -> Any: ...
class CSVFile(LogFile):
    """A CSV file to which rows are appended, and columns"""
    names: list[Any]
    """of the columns"""
    def head_of(self, data: Any) -> Any: ...
    def open(self) -> None: ...
    def add_names(self, names: list[Any]) -> None:
        """Add those columns that the file does not have

        Args:
            names: names of columns, which the file may have already
        """
        ...
    def add(self, row: dict[Any, Any]) -> None:
        """Append a row

        Args:
            row: values by the names of their columns
        """
        ...
    def load_state_dict(self, state: Any) -> None: ...
def parse_csv(path: Path) -> list[Any]:
    """Return the lines of a CSV file, the names first; raises ValueError if it is none

    Args:
        path: the file

    Returns:
        of lists of strings

    Raises:
        ValueError: … is no CSV file: …
        ValueError: … has two columns of one name: …
        ValueError: row … of … has … cells, but there are … columns
    """
    ...
def _value(s: Any) -> Any: ...
class CSVLogger(FileLogger):
    """Writes the rows of the history to a CSV file, each when its epoch or validation ends"""
    def __init__(self, fname: str|Path = 'history.csv', append: bool = False) -> None:
        """Writes the rows of the history to a CSV file, each when its epoch or validation ends

        Args:
            fname: the file, relative to `learn.path`
            append: go on with a file of an earlier run? False: replace it
        """
        ...
    def make_file(self) -> Any: ...
    def log_metrics(self, metrics: Any, step: Any) -> None:
        """Args:
            step: they belong to no row of the history
        """
        ...
    def write_row(self, row: Any, step: Any) -> None: ...
    def read_log(self) -> History:
        """Read the file: numbers as numbers, empty cells as None; raises FileNotFoundError before the first fit

        Raises:
            FileNotFoundError: there is no log at … yet: it is written by `learn.fit`
        """
        ...
