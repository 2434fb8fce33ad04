# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Write a trained model to one file that contains no code, and get the same predictions from it"""
from collections.abc import Callable
from ..learner import Learner
from pathlib import Path
from torch import nn
from typing import Any, BinaryIO

__all__ = ['read_export', 'load_learner']
_format: str
_version: int
_loss: str
def _describe_inputs(learn: Any) -> list[Any]|None:
    """The shapes and types of a batch's inputs"""
    ...
def _describe(learn: Any, inputs: Any, about: Any) -> Any:
    """The description of a Learner, for JSON"""
    ...
def _write_safetensors(state: Any, path: Any) -> None: ...
def _read_safetensors(path: Any) -> Any: ...
def read_export(file: str|Path|BinaryIO) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the description and the tensors in a file; raises ValueError if the file is something else; runs no code

    Args:
        file: what `Learner.export` wrote: a path, or an open binary file

    Raises:
        ValueError: … was not written by `learn.export`…
        ValueError: … is incomplete
        ValueError: the description in … is damaged: …
        ValueError: … has format …, and this learnkit reads up to …: it was written by a newer one
    """
    ...
def _check_note(file: Any, note: Any) -> None: ...
def load_learner(
    file: str|Path|BinaryIO,
    model: nn.Module|None = None,
    loss_func: Callable[..., Any]|None = None,
    dls: Any = None,
    **kwargs: Any,
) -> Learner:
    """Return a Learner for inference from a file; runs no code; raises ValueError, and then the model is unchanged

    Args:
        file: what `Learner.export` wrote: a path, or an open binary file
        model: a model of the same shapes, which gets the weights
        loss_func: needed if it was one of your own that determines what predictions mean
        dls: data to train further with; None: no data
        kwargs: of `Learner`

    Raises:
        ValueError: … has the weights of a …, and no code: pass the model they are for, as in `load_learner(file, …
        ValueError: expected weights by name
        ValueError: these weights are of another model: ……
        ValueError: the predictions depend on …, which was not made by learnkit: pass it as `loss_func=`
    """
    ...
def _load_loss(config: Any, tensors: Any) -> Any:
    """The loss function in a file; None if predictions do not depend on it

    Raises:
        ValueError: the predictions depend on …, which was not made by learnkit: pass it as `loss_func=`
    """
    ...
