# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Run the loop without training: `validate`, parts of a run by `with learn:`, and quiet contexts"""
from typing import Any

def _not_here(cb: Any) -> None: ...
