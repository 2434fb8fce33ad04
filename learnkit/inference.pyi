# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Run the loop without training: `validate`, parts of a run by `with learn:`, and quiet contexts"""
from typing import Any

def _without_cached_casts() -> Any:
    """Do not use the casts that `torch.autocast` has cached, until the Snapshot is restored"""
    ...
def _not_here(cb: Any) -> None: ...
