# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Epochs, batches, items, tokens or hours as one value: `Time('500ba')`"""
from functools import total_ordering
from typing import Any

__all__ = ['Time']
_whole: tuple[Any, ...]
_seconds: dict[Any, Any]
_number: str
_hms: Any
_guesses: dict[Any, Any]
_spelling: str
def _parse(text: Any) -> tuple[Any, ...]:
    """`(value, unit)` of an amount, `(None, None)` if it is not one"""
    ...
def _hint(text: Any) -> Any:
    """The spelling that was probably meant, by the first two letters of the unit"""
    ...
@total_ordering
class Time:
    """An amount of training such as '2ep', '500ba' or '1h30m' (Composer's `Time`). Raises ValueError for other text."""
    value: float
    unit: Any
    def __init__(self, value: Any, unit: str|None = None) -> None:
        """An amount of training such as '2ep', '500ba' or '1h30m' (Composer's `Time`). Raises ValueError for other text.

        Args:
            value: text such as '500ba', another `Time`, or a number if there is a `unit`
            unit: of a number: 'ep', 'ba', 'sp', 'tok', 'dur', 's', 'm' or 'h'

        Raises:
            ValueError: … is no amount of training: ……
            ValueError: … is no amount of '…': it must be finite
            ValueError: …: '…' counts whole ones; '0.1dur' is a fraction of the run
        """
        ...
    def _value_of(self, o: Any) -> Any:
        """The value of `o`, which must have the same unit

        Raises:
            TypeError: … has no unit: write for instance Time(…, '…')
            TypeError: '…' and '…' cannot be compared or added: one is in '…', the other in '…'
        """
        ...
    def __eq__(self, o: Any) -> bool: ...
    def __lt__(self, o: Any) -> bool: ...
    def __add__(self, o: Any) -> Any: ...
    def __radd__(self, o: Any) -> Any: ...
    def __sub__(self, o: Any) -> Any: ...
    def __rsub__(self, o: Any) -> Any: ...
    def __mod__(self, o: Any) -> Any: ...
    def __floordiv__(self, o: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __bool__(self) -> bool: ...
    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...
    def __mul__(self, k: Any) -> Time:
        """Return `k` times this amount; counted units are rounded down

        Args:
            k: a number, or a fraction such as '0.1dur'
        """
        ...
    __rmul__ = __mul__
    def __truediv__(self, o: Any) -> Any:
        """Return the ratio to another amount, or this amount divided by a number

        Args:
            o: an amount of the same unit, or a number

        Raises:
            TypeError: … has no unit: write for instance Time(…, '…')
            TypeError: '…' and '…' cannot be compared or added: one is in '…', the other in '…'
        """
        ...
def find_tokens(b: Any, dls: Any = None) -> int:
    """Return the number of tokens in a batch. Raises ValueError if it holds no tensor of token ids.

    Args:
        b: a batch
        dls: the data; if it has a function `n_tokens(batch)`, that is called instead

    Raises:
        ValueError: tokens cannot be counted, because the batch has no tensor of integers with rows and columns: put a …
    """
    ...
