# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What lives longer than a run is given back when the Learner is closed"""
from ..callback import Callback
from typing import Any

__all__ = ['ClosedLearner', 'close_all']
class ClosedLearner(Callback):
    """Refuses every run of a Learner that was closed"""
    def before_fit(self) -> None: ...
_open: Any
def close_all() -> None:
    """Close the Learners that are to be closed at exit"""
    ...
