# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Parameter groups for models with a head: `body_and_head`, or `by_depth` with the learning rates of `layer_decay`"""
from collections.abc import Iterator
from torch import nn
from typing import Any, NoReturn

__all__ = ['head_params', 'body_and_head', 'by_depth', 'layer_decay']
def no_head(model: nn.Module, why: str) -> NoReturn:
    """Raise ValueError, and say what to write

    Args:
        model: the model
        why: what is the matter

    Raises:
        ValueError: …: …. Write the groups by hand, the head last, as in `splitter=lambda m: [params(m.body), …
    """
    ...
def _of_timm(model: Any) -> Any: ...
def _of_transformers(model: Any) -> Any: ...
_names: tuple[Any, ...]
_aux: tuple[Any, ...]
def _last_layer(m: Any) -> Any:
    """The last layer with weights in `m`"""
    ...
def _of_torchvision(model: Any) -> list[Any]: ...
def head_params(model: nn.Module) -> list[nn.Parameter]:
    """Returns the parameters of the head, as the model or its library says; raises ValueError where neither does

    Args:
        model: a model of timm, transformers or torchvision, or another one with `get_classifier()`
    """
    ...
def body_and_head(model: nn.Module) -> list[list[nn.Parameter]]:
    """Returns two parameter groups, for `Learner(splitter=body_and_head)`; raises ValueError where no head is found

    Args:
        model: as for `head_params`
    """
    ...
def _n_layers(m: Any) -> Any: ...
def parts(m: nn.Module) -> list[nn.Module]:
    """Returns the parts of `m` in order, of which none has more than half of its layers, unless it is one

    Args:
        m: a model
    """
    ...
def has_params_inside(m: nn.Module) -> bool:
    """Has `m` children with parameters?

    Args:
        m: a module
    """
    ...
def depths(model: nn.Module) -> Iterator[list[nn.Parameter]]:
    """Gives the parameters of each part of `model`; a parameter may come twice

    Args:
        model: the model
    """
    ...
def joined(groups: list[Any], n: int|None) -> list[Any]:
    """Returns `n` groups of neighbours, of about as many layers each; the last stays alone if it can

    Args:
        groups: the groups
        n: how many there are to be; None: as many as there are

    Raises:
        ValueError: n must be from 1 to …, the number of layers
    """
    ...
def by_depth(model: nn.Module, n: int|None = None) -> list[list[nn.Parameter]]:
    """Returns parameter groups from the first layers to the head, for `Learner(splitter=by_depth)`

    Args:
        model: any model
        n: number of groups; None: one for each layer or block

    Raises:
        ValueError: `n` must be a number of groups, 1 or more
    """
    ...
def layer_decay(model: nn.Module, lr: float, decay: float = 0.75, n: int|None = None) -> list[float]:
    """Returns the learning rates of the groups of `by_depth`, smaller from layer to layer towards the input

    Args:
        model: the model that the Learner gets
        lr: the learning rate of the last group
        decay: that of each group, divided by that of the next one
        n: as for `by_depth`

    Raises:
        ValueError: decay must be above 0 and at most 1
    """
    ...
