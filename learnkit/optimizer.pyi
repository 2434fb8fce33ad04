# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`OptimWrapper`: hyper-parameters by name, weight decay, freezing and state over any torch optimizer"""
from collections.abc import Callable, Iterable
from ._fastcore import L
from torch import Tensor
from torch.optim import Optimizer
from typing import Any

__all__ = ['OptimWrapper', 'create_optimizer']
class OptimWrapper:
    """Wraps a torch optimizer: hyper-parameters by name, parameter groups, weight decay, freezing, state"""
    takes_group_dicts: bool
    opt: Any
    no_decay: Any
    train_always: Any
    frozen_idx: Any
    _off: set[Any]
    _hypers: Any
    _order: Any
    def __init__(
        self,
        params: Iterable[Any]|None = None,
        opt: Callable[..., Any]|Optimizer|None = None,
        lr: float|Tensor|slice|list[Any]|None = None,
        no_decay: Iterable[Any] = (),
        train_always: Iterable[Any] = (),
        **kw: Any,
    ) -> None:
        """Wraps a torch optimizer: hyper-parameters by name, parameter groups, weight decay, freezing, state

        Args:
            params: Parameters, or one list of them for each group; None if `opt` is built already
            opt: Optimizer class, `partial` of one, function of group dicts, built optimizer
            lr: Learning rate; None: the optimizer's own default
            no_decay: Parameters without weight decay, once `split_no_decay` is called
            train_always: Parameters that are trained in frozen groups too
            kw: Other arguments of `opt`

        Raises:
            TypeError: … needs no wrapper.
        """
        ...
    @property
    def param_groups(self) -> list[Any]:
        """The parameter groups of the torch optimizer"""
        ...
    @property
    def param_lists(self) -> L:
        """The parameters, one list for each group"""
        ...
    @param_lists.setter
    def param_lists(self, lists: Iterable[Any]) -> None:
        """Args:
            lists: in the module `ownership`
        """
        ...
    @property
    def hypers(self) -> L:
        """The hyper-parameters, a dictionary for each group"""
        ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def __repr__(self) -> str: ...
    def step(self, closure: Callable[..., Any]|None = None) -> Any:
        """Makes one step of the optimizer

        Args:
            closure: Evaluates the model again and returns the loss, for optimizers such as LBFGS

        Returns:
            The loss of `closure`, or None
        """
        ...
    def zero_grad(self, **kwargs: Any) -> None:
        """Sets the gradients of all parameters to None; with `kwargs` as the torch optimizer's own `zero_grad` does

        Args:
            kwargs: arguments of the torch optimizer's `zero_grad`, such as `set_to_none`
        """
        ...
    def clear_state(self) -> None:
        """Resets what the optimizer gathered over the steps: momentum, averages, counts"""
        ...
    def all_params(self, n: slice = ..., with_grad: bool = False) -> L:
        """Returns every parameter of the groups `n`, with its group, state and hyper-parameters

        Args:
            n: Which groups
            with_grad: Only parameters that have a gradient?

        Returns:
            (parameter, its group's parameters, its state, its hyper-parameters)
        """
        ...
    def set_hyper(self, name: str, value: float|Tensor|slice|Iterable[Any]) -> None:
        """Sets the hyper-parameter `name` of every group; raises KeyError if the optimizer has none of that name

        Args:
            name: `lr`, `mom`, `wd`, ...
            value: One number for all groups, one for each, or a slice
        """
        ...
    def set_hypers(self, **kwargs: Any) -> None:
        """Sets several hyper-parameters: each keyword is a name, with a value as for `set_hyper`

        Args:
            kwargs: values by name, such as `lr=.1, wd=0.`
        """
        ...
    def split_no_decay(self) -> None:
        """Moves the parameters of `no_decay` to torch groups of their own, without weight decay"""
        ...
    def merge_no_decay(self) -> None:
        """Undoes `split_no_decay`: every parameter decays again"""
        ...
    def freeze_to(self, n: int) -> None:
        """Freezes the groups before `n` and trains the rest; raises ValueError if there are not so many groups

        Args:
            n: Number of the first group to train; negative: counted from the end

        Raises:
            TypeError: freeze_to takes the number of the first group to be trained, such as -1 for the last one, not ….
            ValueError: freeze_to(…): there are only … groups.
        """
        ...
    def freeze(self) -> None:
        """Freezes all groups but the last"""
        ...
    def unfreeze(self) -> None:
        """Unfreezes all groups"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Returns PyTorch's state dict, with the number of frozen groups, and that of parameters that have a state"""
        ...
    def load_state_dict(self, sd: dict[Any, Any]) -> None:
        """Loads the state `sd`; raises ValueError if it does not fit, and then nothing has changed

        Args:
            sd: From `state_dict`, of an `OptimWrapper` or of a torch optimizer

        Raises:
            ValueError: An optimizer's state has 'state' and 'param_groups', not ….
            ValueError: The saved optimizer is of another kind: it has no …, which … needs.
            ValueError: The saved optimizer has groups of … parameters, this one of …: they need the same model, splitter …
        """
        ...
    def take_params(self, new: OptimWrapper, model_ids: Iterable[Any]) -> None:
        """Take over the parameters of `new`; hyper-parameters stay, and the state of the parameters that stay

        Args:
            new: an optimizer that was just made, with as many groups
            model_ids: the `id` of each parameter of the model: what is frozen in it is kept too
        """
        ...
    def take_state(self, old: Any) -> None:
        """Take over the state of the parameters that `old` has too, and their groups' hyper-parameters but `lr` and `wd`

        Args:
            old: an optimizer that was made in the same way, with other groups
        """
        ...
    def _put_lists(self, groups: Any) -> None:
        """Give each group other parameters; hyper-parameters stay, and the state of the parameters that stay

        Raises:
            ValueError: … lists of parameters for … parameter groups: give one list for each group
            TypeError: … keeps a list of its parameters: make a new optimizer for others
        """
        ...
def create_optimizer(
    opt_func: Any,
    params: Iterable[Any],
    lr: float|Tensor|slice|list[Any]|None = None,
    no_decay: Iterable[Any] = (),
    train_always: Iterable[Any] = (),
) -> Any:
    """Returns the optimizer of a Learner; raises TypeError or ValueError if `opt_func` cannot make or be one

    Args:
        opt_func: Class, `partial`, function of group dicts, built optimizer, or one with `set_hyper`
        params: What `splitter(model)` returns: parameters, or one list of them for each group
        lr: Learning rate; None: the optimizer's own
        no_decay: Parameters without weight decay, once it is asked for
        train_always: Parameters that are trained in frozen groups too

    Returns:
        An `OptimWrapper`, or another optimizer with `set_hyper`
    """
    ...
