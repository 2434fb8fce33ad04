# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A trained model in one file that cannot run code, and the same predictions from it"""
from collections.abc import Callable
from ..learner import Learner
from pathlib import Path
from torch import nn
from typing import Any

__all__ = ['read_export', 'load_learner']
known_losses: dict[Any, Any]
def _settings(m: Any) -> dict[Any, Any]:
    """The settings of a loss: what is a number or a text among its attributes"""
    ...
def describe_loss(f: Any) -> dict[Any, Any]|None:
    """Name and settings of a loss function, for JSON; `own` says that it is not in the list, and that predictions depend on it

    Args:
        f: a loss function
    """
    ...
def _set(m: Any, settings: Any, what: Any) -> None: ...
def make_loss(about: dict[Any, Any], tensors: dict[Any, Any]) -> Callable[..., Any]|None:
    """The loss function that a file describes; raises ValueError if it is not among `known_losses`

    Args:
        about: from `describe_loss`
        tensors: the weights of classes, from the `state_dict` of the loss
    """
    ...
_version: int
_loss: str
def _inputs(learn: Any) -> list[Any]|None:
    """What a batch of inputs looks like"""
    ...
def _write_safe(state: Any, path: Any) -> None: ...
def _read_safe(path: Any) -> Any: ...
def read_export(file: str|Path|Any) -> tuple[Any, ...]:
    """`(note, state)`: the description, and the tensors. Raises ValueError if the file is something else; runs no code.

    Args:
        file: from `Learner.export`: a path, or an open binary file
    """
    ...
def load_learner(
    file: str|Path|Any,
    model: nn.Module|None = None,
    loss_func: Callable[..., Any]|None = None,
    dls: Any = None,
    **kwargs: Any,
) -> Learner:
    """A Learner with the weights from a file, for predictions; never runs code from the file. Raises ValueError, and then the model is unchanged.

    Args:
        file: from `Learner.export`: a path, or an open binary file
        model: a model of the same shapes, to take over the weights
        loss_func: needed if it was a function of your own that says what predictions mean
        dls: data to go on with; None: none
        kwargs: of `Learner`
    """
    ...
