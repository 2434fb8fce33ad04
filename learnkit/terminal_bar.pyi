# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A progress bar on the last line of a terminal"""
from .display import LineDisplay
from typing import Any

__all__ = ['TerminalBar']
class StreamProxy:
    """A proxy of `sys.stdout` or `sys.stderr` that erases the progress bar before it writes"""
    out: Any
    bar: Any
    def __init__(self, out: Any, bar: Any) -> None:
        """A proxy of `sys.stdout` or `sys.stderr` that erases the progress bar before it writes

        Args:
            out: the stream
            bar: the `TerminalBar` that is on the screen
        """
        ...
    def write(self, s: str) -> int:
        """Erase the bar if it is drawn, and write `s`

        Args:
            s: the text to write

        Returns:
            number of characters
        """
        ...
class TerminalBar(LineDisplay):
    """A progress bar on the last line of a terminal, the rows above it"""
    active: bool
    midline: bool
    line: Any
    fill: str
    bar: Any
    out: Any
    def begin(self, what: Any, n: Any) -> None: ...
    def watch(self) -> None:
        """Replace `sys.stdout` and `sys.stderr` by proxies, until `end`"""
        ...
    def update(self, i: Any, note: str = '') -> None: ...
    def draw(self, i: int, text: str) -> None:
        """Draw the bar over the previous one; not after an unfinished line of other text

        Args:
            i: number of batches so far
            text: percentage and times
        """
        ...
    def fitting(self, i: int, text: str, width: int) -> str:
        """Return the bar, or as much of it as fits

        Args:
            i: number of batches so far
            text: percentage and times
            width: characters in a line
        """
        ...
    def room(self) -> Any: ...
    def _wipe(self) -> Any:
        """What erases a line that the terminal has broken since it was drawn, as it is narrower now"""
        ...
    def erase(self) -> None:
        """Leave an empty line"""
        ...
    def _put(self, s: Any) -> None: ...
    def leave(self) -> None: ...
    def end(self) -> None: ...
