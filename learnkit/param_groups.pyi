# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Building a torch optimizer: from parameters or lists of them, and from a class, a `partial` or a function"""
from collections.abc import Callable, Iterable
from torch import Tensor
from torch.optim import Optimizer
from typing import Any

def _is_param(o: Any) -> Any: ...
def _group_dict(o: Any) -> Any: ...
def param_dicts(params: Iterable[Any]) -> list[Any]:
    """Returns parameters as a list of PyTorch's group dicts; raises ValueError if there are none, TypeError for a module

    Args:
        params: Parameters, named parameters, one list of them for each group, or PyTorch's group dicts

    Returns:
        Dicts with 'params', as PyTorch's optimizers take them
    """
    ...
def _call(opt: Any, params: Any, lr: Any = None, **kw: Any) -> Any:
    """Builds an optimizer over `params` with the class, `partial` or function `opt`"""
    ...
def copy_tensors(v: Any) -> Any:
    """Returns the hyper-parameter `v`, copied if it is a tensor: writing in place must not reach another group

    Args:
        v: a number, a tensor, or a tuple of them
    """
    ...
def _check_same_params(opt: Any, params: Any) -> None:
    """Raises ValueError if the built optimizer `opt` has none of the parameters `params`"""
    ...
def build_optimizer(
    opt: Callable[..., Any]|Optimizer,
    params: Iterable[Any]|None,
    lr: float|Tensor|slice|list[Any]|None = None,
    **kw: Any,
) -> Any:
    """Returns an optimizer over `params`; raises TypeError or ValueError if `opt` cannot make or be one

    Args:
        opt: Optimizer class, `partial` of one, function of group dicts, or a built optimizer
        params: What `param_dicts` takes; for a built optimizer None skips the check
        lr: Learning rate; None: the optimizer's own default
        kw: Other arguments of `opt`

    Returns:
        A torch optimizer, or another one with `set_hyper`
    """
    ...
def default_lr(opt_func: Any, lr: float|Tensor|slice|list[Any]|None = None) -> float|Tensor|slice|list[Any]:
    """Returns the learning rate to train with: that of a `partial`, else `lr`, else a built optimizer's, else 1e-3

    Args:
        opt_func: What the user gave as `opt_func`: class, `partial`, function or built optimizer
        lr: Learning rate that the user gave beside it

    Returns:
        One learning rate, or one for each group
    """
    ...
