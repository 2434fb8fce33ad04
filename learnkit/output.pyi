# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Say something to whoever watches; an output that cannot be written is no reason to end a run"""
from collections.abc import Callable
from typing import Any

__all__ = ['write_out', 'Output']
class Output:
    """Calls functions that print; counts how often in a row the output could not be written"""
    n: int
    def __init__(self) -> None: ...
    def __call__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call `f`; warns instead of raising if there is no room for what it prints

        Args:
            f: a function that prints
            args: its arguments
            kwargs: its arguments
        """
        ...
    def report(self) -> None:
        """Warn of what could not be written, if anything"""
        ...
write_out: Output
