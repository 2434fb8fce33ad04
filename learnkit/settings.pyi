# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What an object was made with, as it keeps it: for its `repr`, and for the configuration of a run"""
from typing import Any

def _defaults(cls: Any) -> dict[Any, Any]:
    """The arguments of a class and their defaults"""
    ...
def settings(o: Any) -> dict[str, Any]:
    """Return the arguments of its constructor that `o` keeps as attributes of the same names, with their present values

    Args:
        o: any object
    """
    ...
def plain(v: Any) -> Any:
    """Return a setting as a number, a truth value, None or a short text

    Args:
        v: a setting
    """
    ...
def _text(v: Any, show: Any = repr, n: Any = 60) -> Any:
    """What `show` makes of `v`, if that is short; else its name, or that of its class"""
    ...
def told(o: Any) -> str:
    """Return its class, and the settings that are not the default: `Patience(patience=3)`

    Args:
        o: any object
    """
    ...
_simple: tuple[Any, ...]
def _same(v: Any, default: Any) -> Any: ...
def _said(v: Any) -> Any:
    """Args:
        v: a path is written as a text
    """
    ...
