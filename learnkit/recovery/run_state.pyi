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
def random_states_of_all() -> dict[Any, Any]:
    """Return the random states of all processes, as a part of a checkpoint; every process must call it"""
    ...
def _restore_random(state: Any) -> None: ...
