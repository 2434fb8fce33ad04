# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A table as lines of text, none wider than the terminal"""
from math import inf
from typing import Any

__all__ = ['TextTable']
def broken(name: str, width: int) -> list[Any]:
    """Break a name that is wider than its column, if possible behind a `_` or the like

    Args:
        name: of the column
        width: of the column

    Returns:
        lines
    """
    ...
def arranged(names: list[Any], needs: list[Any], room: float) -> tuple[Any, ...]:
    """Arrange columns in as few lines as possible

    Args:
        names: of the columns
        needs: widths of the values
        room: characters in a line

    Returns:
        the gap between columns; lines, each a list of pairs: number of a column, its width with the gap
    """
    ...
class TextTable:
    """Arranges the rows of a table as lines of text"""
    names: list[Any]
    lines: Any
    needs: Any
    gap: Any
    def __init__(self, names: list[Any]) -> None:
        """Arranges the rows of a table as lines of text

        Args:
            names: of the columns
        """
        ...
    def write(self, row: list[Any], room: float = inf) -> list[Any]:
        """Return the lines of a row; before the first, and where the arrangement changes, those of the head

        Args:
            row: the cells; the names themselves, to begin with
            room: characters in a line

        Returns:
            of lines, each a list of pairs: number of a column, its padded text
        """
        ...
    def _width(self, lines: Any) -> Any: ...
    def _padded(self, row: Any) -> list[Any]: ...
    def _head(self) -> Any: ...
