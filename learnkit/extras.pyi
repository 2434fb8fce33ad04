# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Importing packages of the optional extras, with an error that names what to install"""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ['optional_import', 'pyplot']
@contextmanager
def optional_import(what: str, package: str, extra: str) -> Iterator[None]:
    """Import an optional package in a `with` block; raises an ImportError that names the extra to install

    Args:
        what: what needs the package: the first words of the message
        package: the package that is imported in the block
        extra: the extra of learnkit that installs it, such as 'plot'

    Raises:
        ImportError: … needs …: pip install 'learnkit[…]'
    """
    ...
def pyplot() -> Any:
    """Import and return `matplotlib.pyplot`; raises ImportError if matplotlib is not installed"""
    ...
