# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What to do about a loss function or a metric that returned something other than a number"""
from typing import Any

def loss_value_hint(loss: Any) -> str:
    """Returns what to do about it

    Args:
        loss: what a loss function returned, and what is no tensor
    """
    ...
def metric_number(v: Any, name: str) -> float:
    """Returns `v` as a number; raises TypeError if it is none

    Args:
        v: what a metric returned, and what is no tensor
        name: the metric's name, for the message

    Raises:
        TypeError: The metric `…` should return one number for the batch, but it returned …: …
    """
    ...
