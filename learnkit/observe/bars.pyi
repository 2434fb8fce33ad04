# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Progress bars of tqdm and rich"""
from ..display import LineDisplay
from ..terminal_bar import TerminalBar
from typing import Any

__all__ = ['TqdmBar', 'RichBar']
class TqdmBar(TerminalBar):
    """A progress bar of tqdm for each phase, the rows above it"""
    tqdm: Any
    def __init__(self, n_epoch: int = 0) -> None:
        """A progress bar of tqdm for each phase, the rows above it

        Args:
            n_epoch: epochs in the table; 0: there is no table
        """
        ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, note: str = '') -> None: ...
    def erase(self) -> None: ...
    def end(self) -> None: ...
class RichBar(LineDisplay):
    """Progress bars of rich for the epochs and the batches; in the rows above them new best values are green"""
    bars: Any
    epochs: Any
    batches: Any
    text: Any
    head: Any
    best: dict[Any, Any]
    def __init__(self, n_epoch: int = 0) -> None:
        """Progress bars of rich for the epochs and the batches; in the rows above them new best values are green

        Args:
            n_epoch: epochs in the table; 0: there is no table
        """
        ...
    def epoch(self, i: Any) -> None: ...
    def begin(self, what: Any, n: Any) -> None: ...
    def update(self, i: Any, note: str = '') -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...
    def write(self, line: Any, table: bool = False) -> None: ...
    def _styled(self, row: Any) -> list[Any]:
        """The cells of a row as `Text`"""
        ...
    def _improves(self, name: Any, cell: Any) -> Any:
        """Whether this is better than all values before in its column; the first has none to be compared with"""
        ...
