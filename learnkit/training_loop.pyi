# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Print every event in its place in the loop, with the callbacks that handle it"""

class Text(str):
    """A string whose `repr` is its text, so that a notebook or a console displays it line by line"""
    def __repr__(self) -> str: ...
