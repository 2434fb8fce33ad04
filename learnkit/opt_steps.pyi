# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Makes the optimizer, and sees to it that it has what is trained"""
from collections.abc import Callable
from .steps import Steps
from typing import Any

__all__ = ['OptSteps']
class OptSteps(Steps):
    """The loop's steps, with an optimizer that has what is trained"""
    opt_func: Any
    splitter: Callable[..., Any]
    wd_bn_bias: bool
    train_bn: bool
    _made: Any
    """how it was made"""
    _names: frozenset[Any]|None
    """the names of the parameters before the first batch"""
    _wd: Any
    """the weight decay of a fit, and that before it"""
    lr: Any
    def _use(self, dl: Any) -> None: ...
    def _check_first_loss(self, loss: Any) -> None: ...
    def _check_exhausted(self) -> None: ...
    def _recipe(self) -> tuple[Any, ...]: ...
    def _note_opt(self, opt: Any, recipe: Any) -> None:
        """Note that `opt` was made by `recipe` (None: by the user), and take over the learning rates of its groups"""
        ...
    def _said_lr(self) -> Any:
        """The learning rate that the user gave, None if none"""
        ...
    def _make_opt(self, groups: Any) -> Any:
        """A new optimizer, for these groups of parameters"""
        ...
    def create_opt(self) -> Any:
        """Make the optimizer, `learn.opt`, from `opt_func`; `fit` does it when there is none"""
        ...
    def _unfrozen(self, f: Any) -> None:
        """Call `f` while no group is frozen, as the splitter may leave out what is"""
        ...
    def _unheld(self) -> Any:
        """The parameters that require a gradient and that no optimizer has, by name"""
        ...
    def _adopt(self, running: bool = False) -> Any:
        """Let the optimizer take over those parameters that the splitter gives now; returns the others that it does not have"""
        ...
    def _take_over(self, lost: Any, running: Any) -> None: ...
    def _check_can_take(self, new: Any, lost: Any) -> None: ...
    def _ready_opt(self, reset: bool = False) -> None:
        """Have an optimizer for the model as it is now; one that the user made stays

        Raises:
            ValueError: `learn.opt` has none of the model's parameters (…): build it from `learn.model.parameters()`, or …
        """
        ...
    def _set_wd(self, wd: Any) -> None:
        """Set the weight decay of a fit; None: what it was before a fit was given one"""
        ...
    def _do_first_batch(self, do: Any) -> None:
        """The first batch of a phase, with a look at the parameters before it and after it

        Raises:
            RuntimeError: … got gradients, but the optimizer does not have them, so they would never be trained: let …
        """
        ...
    def _adopt_new_names(self) -> None:
        """After the first forward pass: has it made parameters?"""
        ...
    def _check_trained(self) -> None:
        """Raise RuntimeError if parameters have got a gradient that no optimizer takes

        Raises:
            RuntimeError: … got gradients, but the optimizer does not have them, so they would never be trained: let …
        """
        ...
    def _check_closure(self) -> None:
        """Raise TypeError if the optimizer's `step` needs a function that nobody would give it

        Raises:
            TypeError: … makes a step by evaluating the model several times, which the loop does not: let a callback do …
        """
        ...
