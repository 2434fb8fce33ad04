# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Describe a loss function by its name and settings, without code, and build it again from the description"""
from collections.abc import Callable
from torch import Tensor
from typing import Any

known_losses: dict[Any, Any]
def _is_setting(v: Any) -> Any: ...
def _settings(m: Any) -> dict[Any, Any]: ...
def loss_config(f: Any) -> dict[Any, Any]|None:
    """Return name and settings of a loss function, for JSON; of an unknown one, its name and whether predictions need it

    Args:
        f: a loss function, or None
    """
    ...
def _set(m: Any, settings: Any, what: Any) -> None: ...
def loss_from_config(config: dict[Any, Any], tensors: dict[str, Tensor]) -> Callable[..., Any]|None:
    """Return the loss function that `config` describes; raises ValueError if it is not among `known_losses`

    Args:
        config: what `loss_config` returned
        tensors: the weights of classes, from the `state_dict` of the loss function

    Raises:
        ValueError: the loss function … is not one that is known here
        ValueError: the settings of … are a …
        ValueError: … has no setting …=…
        ValueError: … has no tensor …
    """
    ...
