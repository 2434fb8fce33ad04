# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Collect everything that a run needs to resume, and restore it"""
from ..duration import Time
from typing import Any

format_version: int
def duration_of(state: dict[Any, Any]) -> Time:
    """Return how long the run was to be

    Args:
        state: of a run
    """
    ...
_parts: dict[Any, Any]
def check_parts(state: dict[Any, Any]) -> None:
    """Check that `state` has all parts, each of the right type; raises ValueError if not

    Args:
        state: what should be a result of `run_state`

    Raises:
        ValueError: this checkpoint has format …, and this learnkit reads up to …: it was written by a newer one
        ValueError: this is not the checkpoint of a run: it lacks ……
        ValueError: this is not the checkpoint of a run: …
        ValueError: this checkpoint lacks random numbers: …
    """
    ...
def states_of_all(learn: Any) -> dict[Any, Any]:
    """Return what differs between the processes, of all of them, for a checkpoint; every process must call it

    Args:
        learn: the Learner
    """
    ...
def _states_of_cbs(learn: Any) -> dict[Any, Any]:
    """The states of callbacks that differ from those of process 0"""
    ...
def _meter(learn: Any) -> Any: ...
def _running(metric: Any) -> Any:
    """What a metric has accumulated in this process, without the loss of each batch"""
    ...
def parts_of(state: dict[Any, Any]) -> int:
    """Return how many processes divided the work of the run, as `num_parts` does for this one

    Args:
        state: of a run
    """
    ...
def _restore_own(learn: Any, state: Any) -> None:
    """Restore what is this process's own; in another number of processes only what is process 0's"""
    ...
