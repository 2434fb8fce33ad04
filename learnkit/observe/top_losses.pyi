# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Draw the items with the largest losses, or list them in a table"""
from typing import Any

def _title(r: Any, score: Any) -> str: ...
