# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Parameter groups, weight decay that spares some, and freezing, over any torch optimizer"""
from collections.abc import Callable, Iterable
from ._fastcore import L
from .hypers import Hypers, even_mults
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer, RMSprop, SGD
from typing import Any

__all__ = ['OptimWrapper', 'create_optimizer', 'SGD', 'Adam', 'AdamW', 'RMSprop', 'Hypers', 'even_mults']
def _param_dicts(params: Any) -> Any:
    """`params` as a list of torch's group dicts"""
    ...
def _call(opt: Any, params: Any, lr: Any = None, **kw: Any) -> Any:
    """Build an optimizer over `params` with the class, `partial` or function `opt`"""
    ...
def _own(v: Any) -> Any:
    """`v`, copied if it is a tensor: writing in place must not reach another group"""
    ...
def _build(opt: Any, params: Any, lr: Any = None, **kw: Any) -> Any:
    """An optimizer over `params`, from whatever `opt` is"""
    ...
class OptimWrapper:
    """Hyper-parameters, parameter groups and freezing over the torch optimizer `opt`"""
    opt: Any
    no_decay: list[Any]
    train_always: list[Any]
    frozen_idx: Any
    _off: set[Any]
    _hypers: Any
    _order: list[Any]
    def __init__(
        self,
        params: Iterable[Any]|None = None,
        opt: Callable[..., Any]|Optimizer|None = None,
        lr: float|Tensor|slice|list[Any]|None = None,
        no_decay: Iterable[Any] = (),
        train_always: Iterable[Any] = (),
        **kw: Any,
    ) -> None:
        """Hyper-parameters, parameter groups and freezing over the torch optimizer `opt`

        Args:
            params: Parameters, or one list of them for each group; not needed if `opt` is built already
            opt: Optimizer class, `partial` of one, function of group dicts, or a built optimizer
            lr: Learning rate; None: the optimizer's own default
            no_decay: Parameters without weight decay, once `spare` is called
            train_always: Parameters that are trained in frozen groups too
            kw: What else to give to `opt` when it is called
        """
        ...
    @property
    def param_groups(self) -> Any:
        """Args:
            self: asked for at each step: it would come by `__getattr__`, which is slower
        """
        ...
    @property
    def param_lists(self) -> Any: ...
    @property
    def hypers(self) -> Any: ...
    def __getstate__(self) -> dict[Any, Any]:
        """Args:
            self: a copy makes views of its own
        """
        ...
    def __repr__(self) -> str: ...
    def _merged(self, groups: Any) -> Any:
        """The parameters of a (maybe split) group, and their names, in the order in which they came"""
        ...
    def step(self, closure: Callable[..., Any]|None = None) -> Any:
        """One step of the optimizer

        Args:
            closure: Evaluates the model again and returns the loss, for optimizers such as LBFGS
        """
        ...
    def zero_grad(self, **kwargs: Any) -> Any:
        """Drop the gradients"""
        ...
    def clear_state(self) -> None:
        """Forget what was gathered over the steps: momentum, averages, counts"""
        ...
    def all_params(self, n: slice = ..., with_grad: bool = False) -> L:
        """Every parameter of the groups `n`, with all that belongs to it

        Args:
            n: Which groups
            with_grad: Only those that have a gradient?

        Returns:
            (parameter, its group's parameters, its state, its hyper-parameters)
        """
        ...
    def set_hyper(self, name: str, value: float|Tensor|slice|Iterable[Any]) -> None:
        """Set the hyper-parameter `name` of every group

        Args:
            name: `lr`, `mom`, `wd`, ...
            value: One number for all groups, one for each, or a slice
        """
        ...
    def set_hypers(self, **kwargs: Any) -> None:
        """Set several hyper-parameters, by name"""
        ...
    def spare(self) -> None:
        """Move the parameters of `no_decay` to torch groups of their own, without weight decay"""
        ...
    def unspare(self) -> None:
        """Undo `spare`: every parameter decays again"""
        ...
    def freeze_to(self, n: int) -> None:
        """Train the groups from `n` on, freeze those before

        Args:
            n: First group to train; negative: counted from the end
        """
        ...
    def freeze(self) -> None:
        """Train the last group only"""
        ...
    def unfreeze(self) -> None:
        """Train all groups"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Torch's state dict, and how far the model is frozen"""
        ...
    def load_state_dict(self, sd: dict[Any, Any]) -> None:
        """Go on from the state `sd`; if it does not fit, nothing changes

        Args:
            sd: From `state_dict`, of an `OptimWrapper` or of a torch optimizer
        """
        ...
def _bare(step: Any) -> Any:
    """The update inside of the wrappers around a `step` of torch's own; None if it is not wrapped as expected"""
    ...
def _watched(opt: Any) -> Any:
    """Is anything there that the wrappers are for?"""
    ...
def _pick(pg: Any, keep: Any) -> dict[Any, Any]: ...
def _check_state(opt: Any, sd: Any) -> None:
    """Refuse what cannot be the state `sd` of the torch optimizer `opt`"""
    ...
def create_optimizer(
    opt_func: Callable[..., Any]|Optimizer,
    params: Iterable[Any],
    lr: float|Tensor|slice|list[Any]|None = None,
    no_decay: Iterable[Any] = (),
    train_always: Iterable[Any] = (),
) -> Any:
    """The optimizer of a Learner, from whatever the user gave as `opt_func`

    Args:
        opt_func: Class, `partial`, function of group dicts, built optimizer, or one with `set_hyper`
        params: What `splitter(model)` returns: parameters, or one list of them for each group
        lr: Learning rate; None: the optimizer's own
        no_decay: Parameters that weight decay spares, once it is asked for
        train_always: Parameters that are trained in frozen groups too

    Returns:
        An `OptimWrapper`, or another optimizer with `set_hyper`
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
