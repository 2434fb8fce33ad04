# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Save the model and the optimizer to a file, and load them again"""
from pathlib import Path
from typing import Any

__all__ = ['write_state']
def write_state(state: dict[Any, Any], path: Path, **kwargs: Any) -> None:
    """Write a state atomically, in the format that the name of the file asks for

    Args:
        state: the weights, or model and optimizer; not the latter in a .safetensors file
        path: ends in .pth or .safetensors
        kwargs: arguments of `torch.save`
    """
    ...
_checkpoint_keys: set[Any]
def _model_state(file: Any, state: Any) -> Any:
    """`(weights, optimizer state or None)` of what `read_state` returned; raises ValueError for a file of another kind

    Raises:
        ValueError: … is a checkpoint of a whole run: resume from it with `fit(..., resume=path)`
        ValueError: … was written by `learn.export`: read it with `load_learner`
    """
    ...
