# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Building a torch optimizer: from parameters or lists of them, and from a class, a `partial` or a function"""
from collections.abc import Callable, Iterable
from torch import Tensor
from torch.optim import Optimizer
from typing import Any

def _check_once(groups: Any) -> None: ...
def _is_param(o: Any) -> Any: ...
def _group_dict(o: Any) -> Any: ...
def param_dicts(params: Iterable[Any]) -> list[Any]:
    """Returns parameters as a list of PyTorch's group dicts; raises ValueError if there are none, TypeError for a module

    Args:
        params: Parameters, named parameters, one list of them for each group, or PyTorch's group dicts

    Returns:
        Dicts with 'params', as PyTorch's optimizers take them

    Raises:
        TypeError: A group has parameters, not a module: pass module.parameters().
        TypeError: `splitter` returns the parameters, in a list or in a list for each group, but here is …: …
        ValueError: … parameter… given more than once, in a group or in several (layers may share one): let `splitter` …
        ValueError: There are no parameters to train: the model has none, or none that `splitter` lets through.
    """
    ...
def _check_decoupling(cls: Any, v: Any) -> None:
    """Raise TypeError if an optimizer without a switch for it does not decay as `decouple_wd` says

    Raises:
        TypeError: PyTorch's … …: leave out `decouple_wd=…`, or take `Adam`, which decays in both ways
    """
    ...
def is_built(opt: Any) -> bool:
    """Is it an optimizer already, not something that makes one?

    Args:
        opt: what the user gave as `opt_func`
    """
    ...
def torch_keywords(opt: Callable[..., Any], kw: dict[Any, Any]) -> tuple[Any, ...]:
    """Returns both with `mom`, `sqr_mom` and `wd` by the names that a torch optimizer has for them

    Args:
        opt: An optimizer class, or a `partial` of one
        kw: More keywords for it

    Returns:
        `opt` and `kw`

    Raises:
        TypeError: `…` and `…` are the same: give one of them
        TypeError: PyTorch's … …: leave out `decouple_wd=…`, or take `Adam`, which decays in both ways
    """
    ...
def _lr_parameter(f: Any) -> Any:
    """How the function `f` takes `lr`: its default, `Parameter.empty` if it has none; None if it takes no `lr`"""
    ...
def check_opt_func(opt: Any) -> None:
    """Raises TypeError if it is no optimizer, and nothing that could make one

    Args:
        opt: what the user gave as `opt_func`

    Raises:
        TypeError: An optimizer is a class such as torch.optim.AdamW, a partial of one, a function of parameter …
        TypeError: `opt_func` is the class …, which is no optimizer: write one, such as `opt_func=torch.optim.AdamW`…
    """
    ...
def _call(opt: Any, params: Any, lr: Any = None, **kw: Any) -> Any:
    """Builds an optimizer over `params` with the class, `partial` or function `opt`

    Raises:
        TypeError: An optimizer is a class such as torch.optim.AdamW, a partial of one, a function of parameter …
        TypeError: `opt_func` is the class …, which is no optimizer: write one, such as `opt_func=torch.optim.AdamW`…
        TypeError: `opt_func` takes no `lr`, so the learning rate … does not reach it: write it as a function of the …
        TypeError: … made …, not an optimizer: does it return one?
    """
    ...
def copy_tensors(v: Any) -> Any:
    """Returns the hyper-parameter `v`, copied if it is a tensor: writing in place must not reach another group

    Args:
        v: a number, a tensor, or a tuple of them
    """
    ...
def _check_same_params(opt: Any, params: Any) -> None:
    """Raises ValueError if the built optimizer `opt` has none of the parameters `params`

    Raises:
        ValueError: The optimizer has none of the model's parameters: build it from the model that is trained, or give …
    """
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

    Raises:
        TypeError: The optimizer is built already: it cannot be given … any more.
        TypeError: `opt_func` takes no `lr`, so the learning rate … does not reach it: write it as a function of the …
        TypeError: … made …, not an optimizer: does it return one?
        ValueError: The optimizer has none of the model's parameters: build it from the model that is trained, or give …
    """
    ...
def default_lr(opt_func: Any, lr: float|Tensor|slice|list[Any]|None = None) -> float|Tensor|slice|list[Any]:
    """Returns the learning rate to train with: `lr`, that of a `partial` or a built optimizer, else 1e-3

    Args:
        opt_func: What the user gave as `opt_func`: class, `partial`, function or built optimizer
        lr: Learning rate that the user gave beside it

    Returns:
        One learning rate, or one for each group

    Raises:
        ValueError: the learning rate `lr` must be 0 or more
        ValueError: there are two learning rates, lr=… and the lr=… of `opt_func`: give one of them
    """
    ...
def creation_lr(opt_func: Any, lr: float|Tensor|slice|list[Any]|None) -> float|Tensor|slice|list[Any]|None:
    """Returns the learning rate to make the optimizer with; a function that has its own is left to it

    Args:
        opt_func: What the user gave as `opt_func`
        lr: Learning rate that the user gave beside it

    Returns:
        None: do not pass any
    """
    ...
