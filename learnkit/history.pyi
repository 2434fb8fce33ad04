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
    def epochs(self) -> History:
        """The rows of whole epochs, without those of validations within them, which have a `train_iter`"""
        ...
    def last_within(self, train_iter: int) -> History:
        """The rows of validations within the last epoch that came after its last batch, so that its own row repeats them

        Args:
            train_iter: how many training batches are done
        """
        ...
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
class Cells(list[Any]):
    """Values of a row, by position; assigning to one writes to the row"""
    row: dict[Any, Any]
    names: list[Any]
    def __init__(self, row: dict[Any, Any], names: list[Any], empty: Any = None) -> None:
        """Values of a row, by position; assigning to one writes to the row

        Args:
            row: the row
            names: the names of its columns to show
            empty: what to show for None
        """
        ...
    def __setitem__(self, i: Any, v: Any) -> None: ...
    def _add(self, *args: Any, **kwargs: Any) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
