# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`validate`, `get_preds`, `predict`: the loop without the learning, and without a trace"""
from typing import Any

def _loss_act(loss_func: Any) -> Any:
    """The loss function's `activation`, for outputs that are one tensor; None if it has none"""
    ...
