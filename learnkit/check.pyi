# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Check arguments: a whole number, a fraction, a number of batches, or what their annotations say"""
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ['Made', 'check_whole', 'check_fraction', 'check_amount', 'check_choice', 'check_path', 'check_args']
def check_whole(name: str, v: Any, least: int = 1, what: str = 'a whole number', none: bool = False) -> Any:
    """Returns `v` as an `int`; raises ValueError if it is not a whole number, or less than `least`

    Args:
        name: the name of the argument, for the message
        v: its value
        least: the smallest value allowed
        what: what it counts, for the message, such as 'a number of batches'
        none: allow `None` too?

    Returns:
        an int, or None

    Raises:
        ValueError: `…` must be …, … or more
    """
    ...
def check_fraction(name: str, v: Any, zero: bool = False, one: bool = True, what: str = 'a fraction') -> float:
    """Returns `v` as a `float`; raises ValueError if it is not a number between 0 and 1

    Args:
        name: the name of the argument, for the message
        v: its value
        zero: allow 0 too?
        one: allow 1?
        what: what it is, for the message

    Raises:
        ValueError: `…` must be
    """
    ...
def check_amount(name: str, v: Any) -> int|float|None:
    """Returns `v`; raises ValueError if it is neither a number of batches nor a fraction of them

    Args:
        name: the name of the argument, for the message
        v: its value: 5 batches, the fraction 0.1 of the batches, or `None` for all of them

    Raises:
        ValueError: `…` must be a number of batches, 1 or more, or a fraction of them such as 0.1
    """
    ...
def check_choice(name: str, v: Any, choices: Iterable[Any]) -> Any:
    """Returns `v`; raises ValueError if it is none of `choices`

    Args:
        name: the name of the argument, for the message
        v: its value
        choices: the values that are allowed

    Raises:
        ValueError: `…` must be … or
    """
    ...
def check_path(name: str, v: Any) -> Any:
    """Returns `v` as a `Path`, or None; raises TypeError if it is neither text nor a path

    Args:
        name: the name of the argument, for the message
        v: its value, or None

    Returns:
        a Path, or None

    Raises:
        TypeError: `…` must be a path
    """
    ...
Made = TypeVar('Made')
_kinds: dict[Any, Any]
def _fits(v: Any, kind: Any) -> Any: ...
def _simple(f: Any) -> tuple[Any, ...]:
    """The names of what can be given by position to `f`; and name -> kinds, default of parameters of simple kinds"""
    ...
def _wrong(f: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """The name of the first argument that is not what its annotation says, and a sentence about it; else None"""
    ...
def check_args(f: Made) -> Made:
    """Decorator: raises TypeError for an argument that is not what its annotation says, unless `f` itself does

    Args:
        f: a class, of which the constructor is checked, or a function that only makes something

    Returns:
        the class, or a function like `f`
    """
    ...
