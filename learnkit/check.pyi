# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One check for a whole number, one for a fraction, one for an amount of batches"""
from typing import Any

__all__ = ['check_whole', 'check_fraction', 'check_amount']
def check_whole(name: str, v: Any, least: int = 1, what: str = 'a whole number', none: bool = False) -> int|None:
    """`v` as an `int`; raises ValueError if it is no whole number, or less than `least`

    Args:
        name: the argument, for the message
        v: its value
        least: the smallest value that is allowed
        what: what it counts, for the message: 'a number of batches'
        none: is None allowed too?
    """
    ...
def check_fraction(name: str, v: Any, zero: bool = False, one: bool = True, what: str = 'a fraction') -> float:
    """`v` as a `float`; raises ValueError if it is no number between 0 and 1

    Args:
        name: the argument, for the message
        v: its value
        zero: is 0 allowed?
        one: is 1 allowed?
        what: what it is, for the message
    """
    ...
def check_amount(name: str, v: Any) -> int|float|None:
    """`v` itself; raises ValueError if it is no amount of batches

    Args:
        name: the argument, for the message
        v: 5 batches, the fraction 0.1 of them, or None: all
    """
    ...
