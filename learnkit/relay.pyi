# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Process 0 shows the warnings of all processes, each once, with the numbers of those that gave it"""
from typing import Any

_closed: Any
class Relay:
    """From its making to its `end`, process 0 shows the warnings of this process"""
    store: Any
    rank: int
    over: bool
    shows: Any
    seen: set[Any]
    told: list[Any]
    n: Any
    def __init__(self, store: Any, rank: int) -> None:
        """From its making to its `end`, process 0 shows the warnings of this process

        Args:
            store: that all processes share
            rank: the number of this process
        """
        ...
    def _warned(
        self,
        message: Any,
        category: Any,
        filename: Any,
        lineno: Any,
        file: Any = None,
        line: Any = None,
    ) -> Any: ...
    def _tell(self, said: Any, args: Any) -> Any:
        """Put a warning on the list, if it would be printed; show it if process 0 reads the list no more"""
        ...
    def _first(self, name: Any, message: Any) -> Any:
        """Is this the first process that shows it?"""
        ...
    def _show(self, ranks: Any, name: Any, message: Any, filename: Any, lineno: Any) -> None: ...
    def show(self) -> None:
        """In process 0: show what others have said since the last time"""
        ...
    def _read(self, add: Any) -> None: ...
    def end(self, failed: bool = False) -> None:
        """Let warnings be shown as before, and show those that are left

        Args:
            failed: does this process end with an error? Then it shows what process 0 has not shown yet
        """
        ...
