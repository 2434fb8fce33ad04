# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The function inside a `partial`, the name of a function for messages, and which arguments it takes"""
from collections.abc import Callable, Mapping
from typing import Any

def unwrap_partial(f: Any) -> Any:
    """Returns the function inside a `functools.partial`, however deeply nested; `f` itself if it is not a `partial`

    Args:
        f: a function or any other object, perhaps inside of `functools.partial`
    """
    ...
def func_name(f: Any) -> str:
    """Returns the name of a function, or of the class of any other object, for messages

    Args:
        f: a function, a `partial` of one, or any other object
    """
    ...
def takes_argument(f: Callable[..., Any], name: str) -> bool:
    """Returns whether `f` takes an argument `name` that no `partial` has fixed yet

    Args:
        f: a function
        name: the name of an argument
    """
    ...
def takes_one(f: Any) -> bool:
    """Returns whether `f` can be called with one argument

    Args:
        f: a function, a `partial` of one, or a module
    """
    ...
def parameters_of(f: Callable[..., Any]) -> Mapping[Any, Any]:
    """Returns the parameters of `f` by name

    Args:
        f: a class, or a method as its class has it: it is kept
    """
    ...
