# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which of the trained parameters no optimizer has, and an optimizer that takes over new ones"""
from collections.abc import Mapping
from typing import Any

__all__ = ['param_ids', 'unheld_params', 'describe_params', 'optimizers_of', 'can_take_params']
def param_ids(opt: Any) -> set[Any]:
    """Returns which parameters an optimizer has

    Args:
        opt: an optimizer, or an `OptimWrapper`

    Returns:
        the `id` of each parameter
    """
    ...
def unheld_params(modules: Mapping[Any, Any], *opts: Any) -> dict[Any, Any]:
    """Returns the parameters that require a gradient and that none of the optimizers has, by name

    Args:
        modules: prefix of the names -> module
        opts: optimizers

    Returns:
        name -> parameter
    """
    ...
def describe_params(params: Mapping[Any, Any]) -> str:
    """Says how many parameters there are, and of which modules

    Args:
        params: name -> parameter
    """
    ...
def _mentioned(v: Any, deep: bool = True) -> Any:
    """The values of a container, and of the variables from outside that a function uses, or a function in its closure"""
    ...
def optimizers_of(o: Any) -> list[Any]:
    """Returns the optimizers among the attributes of `o`, also in lists and dicts, and those that its functions use

    Args:
        o: a callback, or a Learner
    """
    ...
def _same_kind(opt: Any, new: Any) -> bool:
    """Are these two wrapped optimizers of one class, which keeps all its state by parameter?"""
    ...
def can_take_params(opt: Any, new: Any) -> bool:
    """Returns whether `opt` can take over the parameters and groups of `new`

    Args:
        opt: an optimizer
        new: one that was made in the same way, for other parameters
    """
    ...
def _merged(pg: Any, new: Any, keep: Any) -> dict[Any, Any]:
    """The parameters, and their names, of the group `new`, and behind them those of `pg` that are to be kept"""
    ...
