# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write the losses and metrics of each epoch to a CSV file"""
from ..callback import Callback
from ..history import History
from pathlib import Path
from typing import Any

__all__ = ['CSVLogger']
class CSVLogger(Callback):
    """Writes the Recorder's rows to a CSV file, each when its epoch ends"""
    file: Any
    fname: Path
    append: bool
    def __init__(self, fname: str|Path = 'history.csv', append: bool = False) -> None:
        """Writes the Recorder's rows to a CSV file, each when its epoch ends

        Args:
            fname: the file, relative to `learn.path`
            append: append to an existing file instead of replacing it?
        """
        ...
    def before_fit(self) -> None: ...
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _write_row(self, row: Any) -> None: ...
    def read_log(self) -> History:
        """Read the file: numbers as numbers, empty cells as None; raises FileNotFoundError before the first fit"""
        ...
def _value(s: Any) -> Any: ...
