# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What a Learner trains with, as a dictionary for the configuration that experiment trackers keep"""
from typing import Any

def _plain(v: Any) -> Any:
    """`v` as a number, or a short text"""
    ...
