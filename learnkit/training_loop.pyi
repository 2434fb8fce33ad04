# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Shows every event in its place in the loop, with the callbacks that handle it"""
from typing import Self

class Text(str):
    """A string whose `repr` is its text, so that a notebook or a console displays it line by line"""
    def __repr__(self) -> str: ...
    def shown(self) -> Self:
        """Return it, for a notebook or a console; anywhere else print it first"""
        ...
