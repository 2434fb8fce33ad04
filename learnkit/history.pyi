# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The table of losses and metrics: one row for each epoch, columns by name"""
from typing import Any

__all__ = ['format_time', 'format_value', 'History']
def format_time(t: float) -> str:
    """Format seconds as mm:ss, or h:mm:ss

    Args:
        t: seconds
    """
    ...
def format_value(v: Any) -> str:
    """Format a cell of the table: floats with six decimals, nothing for None

    Args:
        v: the value of a cell
    """
    ...
class History(list[Any]):
    """Rows as dictionaries; `history['valid_loss']` is a column"""
    def __getitem__(self, k: Any) -> Any: ...
    @property
    def names(self) -> list[Any]:
        """The names of the columns"""
        ...
    def latest(self, k: str) -> Any:
        """Return the newest value of a column, None if it has none yet; raises KeyError if there is no such column

        Args:
            k: the name of a column
        """
        ...
    def state_dict(self) -> list[Any]:
        """Return the rows as plain dictionaries"""
        ...
    def load_state_dict(self, state: list[Any]) -> None:
        """Replace all rows by those of `state`

        Args:
            state: what `state_dict` returned
        """
        ...
    def cells(self) -> list[Any]:
        """Return the table as lists of strings, the names first"""
        ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> Any: ...
