# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What a run trains with, in plain words: data, model, loss, optimizer, rates and callbacks; and how two runs differ"""
from collections.abc import Mapping
from typing import Any

_plain: tuple[Any, ...]
def contents(o: Any, n: int = 32) -> str|None:
    """Return a hash of some entries of `o`; None if these are not numbers or texts

    Args:
        o: a tensor, an array, or a sequence
        n: how many entries are looked at
    """
    ...
def _is_array(v: Any) -> Any: ...
def data_contents(ds: Any, depth: int = 4) -> tuple[Any, ...]:
    """Return hashes of what `ds` keeps of its items: tensors, indices, names of files, one for each item

    Args:
        ds: a data set
        depth: how many data sets inside of one another are looked at
    """
    ...
_unimportant: set[Any]
def arguments(o: Any) -> dict[str, Any]:
    """Return the arguments that the class of `o` takes, as far as `o` keeps them under their names

    Args:
        o: an object
    """
    ...
def _name(f: Any) -> str: ...
def _closure(f: Any) -> Any:
    """The variables of the surroundings that function `f` uses, and their values"""
    ...
def described(o: Any, depth: int = 3) -> str:
    """Return in a line what `o` is: a value; a function and what it keeps; a class and its arguments

    Args:
        o: anything that a run is made with
        depth: how many objects inside of one another are described
    """
    ...
def _loader_identity(which: Any, dl: Any) -> dict[Any, Any]: ...
def _optimizer_identity(opt: Any) -> dict[Any, Any]: ...
def _model_identity(model: Any) -> dict[Any, Any]: ...
def _callback_identity(cb: Any) -> Any: ...
def differences(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> dict[str, str]:
    """Return the points in which two runs differ, each with what it is now and what it was

    Args:
        then: the identity of a run
        now: that of another one
    """
    ...
