# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Release what callbacks keep for longer than a run: connections, open files, worker processes"""
from ..callback import Callback
from typing import Any

__all__ = ['RefuseRuns', 'close_all']
class RefuseRuns(Callback):
    """Raises RuntimeError in every run of a Learner that was closed"""
    def before_fit(self) -> None: ...
_at_exit: Any
def close_all() -> None:
    """Close the Learners of which `close_at_exit` was called; prints their errors"""
    ...
