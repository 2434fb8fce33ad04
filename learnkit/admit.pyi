# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What is refused when a callback is added: what is none, a name that is taken, and a second one of some classes"""
from typing import Any

def check_callback(cb: Any) -> None:
    """Raises TypeError if `cb` is none

    Args:
        cb: what should be a callback

    Raises:
        TypeError: … is no callback: pass an instance of a subclass of `Callback`, the class itself, or …
        TypeError: `order` is a number, by which callbacks are sorted, but that of … is …
    """
    ...
def _declared(cls: Any) -> set[Any]: ...
def check_name(learn: Any, cb: Any) -> None:
    """Raises ValueError if the name of `cb` is that of an attribute which is no callback

    Args:
        learn: the Learner
        cb: a callback

    Raises:
        ValueError: … would be reached as `learn.…`, which is an attribute of the Learner: rename the class, for …
    """
    ...
def _kind(cls: Any) -> Any: ...
def check_single(learn: Any, cb: Any) -> None:
    """Raises ValueError if `learn` has this callback already, or one of a class of which it may have only one

    Args:
        learn: the Learner
        cb: a callback

    Raises:
        ValueError: a Learner has one … at a time, and this one has …: change the attributes of `learn.…`, or call …
        ValueError: this … was added already: add a new instance
    """
    ...
