# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Recognize that memory ran out, whatever library says it"""
from typing import Any

_words: Any
def is_out_of_memory(e: BaseException|None) -> bool:
    """Return whether an exception says that there was not enough memory

    Args:
        e: what was raised
    """
    ...
