# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Rename or change the keys of a batch, and of a model's output, with a dictionary or a function"""
from collections.abc import Callable, Mapping
from ..callback import Callback
from typing import Any

__all__ = ['MapInputs', 'MapOutputs']
def check_mapping(f: Any) -> None:
    """Raises TypeError if `f` is neither a function nor a dictionary of names, ValueError if two keys get the same name

    Args:
        f: the argument of a mapping callback

    Raises:
        TypeError: a mapping must be a function or a dictionary of names, such as {'words': 'input_ids'}
        ValueError: two keys would become …
    """
    ...
def rename_keys(d: Any, names: Mapping[Any, Any], what: str = 'batch') -> dict[Any, Any]:
    """Returns `d` with new keys; raises KeyError for a key that `d` lacks, ValueError if two keys become the same

    Args:
        d: a mapping, such as a batch or the output of a model
        names: old keys, and the new ones
        what: what `d` is, for messages

    Raises:
        TypeError: keys can be renamed in a dictionary only, but the … is a …: give a function instead
        KeyError: the … has no …: …
        ValueError: the … has a … already
    """
    ...
class MapInputs(Callback):
    """Applies a function to each batch, or renames its keys: `learn.batch = f(learn.batch)`"""
    f: Any
    def __init__(self, f: Callable[..., Any]|Mapping[Any, Any], train: bool = True, valid: bool = True) -> None:
        """Applies a function to each batch, or renames its keys: `learn.batch = f(learn.batch)`

        Args:
            f: a function of the batch, or a dictionary of old keys and new ones
            train: for the batches of training?
            valid: for those of validation and prediction?

        Raises:
            TypeError: a mapping must be a function or a dictionary of names, such as {'words': 'input_ids'}
            ValueError: two keys would become …
        """
        ...
    def after_fetch(self) -> None: ...
class MapOutputs(Callback):
    """Applies a function to each output of the model, or renames its keys: `learn.pred = f(learn.pred)`"""
    f: Any
    def __init__(self, f: Callable[..., Any]|Mapping[Any, Any], train: bool = True, valid: bool = True) -> None:
        """Applies a function to each output of the model, or renames its keys: `learn.pred = f(learn.pred)`

        Args:
            f: a function of the output, or a dictionary of old keys and new ones
            train: in training?
            valid: in validation and prediction?

        Raises:
            TypeError: a mapping must be a function or a dictionary of names, such as {'words': 'input_ids'}
            ValueError: two keys would become …
        """
        ...
    def after_pred(self) -> None: ...
