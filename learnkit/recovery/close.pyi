# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What lives longer than a run is given back when the Learner is closed"""
from typing import Any

__all__ = ['close_all']
_open: Any
def close_all() -> None:
    """Close the Learners that are to be closed at exit"""
    ...
