# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Check arguments: a whole number, a fraction, a number of batches"""
from typing import Any

__all__ = ['check_whole', 'check_fraction', 'check_amount']
def check_whole(name: str, v: Any, least: int = 1, what: str = 'a whole number', none: bool = False) -> int|None:
    """Returns `v` as an `int`; raises ValueError if it is not a whole number, or less than `least`

    Args:
        name: the name of the argument, for the message
        v: its value
        least: the smallest value allowed
        what: what it counts, for the message, such as 'a number of batches'
        none: allow `None` too?
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
    """
    ...
def check_amount(name: str, v: Any) -> int|float|None:
    """Returns `v`; raises ValueError if it is neither a number of batches nor a fraction of them

    Args:
        name: the name of the argument, for the message
        v: its value: 5 batches, the fraction 0.1 of the batches, or `None` for all of them
    """
    ...
