# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The parameters, optimizer state and hyper-parameters for a compiled train step, kept current between batches"""
from ..learner import Learner
from .functional_optim import FunctionalOptim
from typing import Any

def step_modules(learn: Learner) -> list[Any]:
    """Returns all modules of the model, and of the loss function if that is a module

    Args:
        learn: the Learner
    """
    ...
_trained: Any
_grad: Any
_param_hooks: tuple[Any, ...]
_kinds: tuple[Any, ...]
_module_hooks: Any
_global_hooks: Any
class StepInputs:
    """The inputs of a compiled train step besides the batch: parameters, optimizer state, hyper-parameters"""
    model: Any
    loss_func: Any
    opt: Any
    hooks: list[Any]
    all_params: Any
    trained: list[Any]
    foreign_params: list[Any]
    params: list[Any]
    group_of: tuple[Any, ...]
    clips: list[Any]
    amp: tuple[Any, ...]|None
    accumulation: Any
    optim: Any
    cuda: Any
    look: Any
    plain: Any
    switches: list[Any]
    program: Any
    values: Any
    hypers: Any
    options: Any
    missing_state: list[Any]
    states: list[Any]
    moved: list[Any]
    seen: Any
    def __init__(
        self,
        learn: Learner,
        optim: FunctionalOptim|None,
        clips: list[Any],
        amp: tuple[Any, ...]|None,
        accumulation: Any = None,
    ) -> None:
        """The inputs of a compiled train step besides the batch: parameters, optimizer state, hyper-parameters

        Args:
            learn: the Learner
            optim: how its optimizer updates a parameter; None: the step returns the gradients
            clips: the `GradientClip`s among its callbacks
            amp: device type and 16-bit type of its `MixedPrecision`
            accumulation: its `GradientAccumulation`: the gradients are multiplied by the batch's share
        """
        ...
    def _objects(self, learn: Any, own: bool = False) -> Any:
        """All that must stay the same objects; with `own` only what decides how a step can be compiled"""
        ...
    def is_current(self, learn: Learner) -> bool:
        """Returns whether these are still the parameters and states of the Learner's model and optimizer

        Args:
            learn: the Learner
        """
        ...
    def belongs_to(self, learn: Learner) -> bool:
        """Returns whether the Learner still has this model, loss function and optimizer, with the same switches

        Args:
            learn: the Learner
        """
        ...
    def is_plain(self) -> bool:
        """Returns whether there is none of what the following look for; one pass over all parameters, in C"""
        ...
    def has_hooks(self) -> bool:
        """Returns whether there are hooks, which a program would not call"""
        ...
    def has_grads(self) -> bool:
        """Returns whether there are gradients from before, which are a part of the step"""
        ...
    def has_foreign(self) -> bool:
        """Returns whether weights would get gradients that are not in the optimizer"""
        ...
    def read_factor(self) -> None:
        """Reads what the gradients of the batch at hand are multiplied by"""
        ...
    def read_hypers(self) -> None:
        """Creates a new tensor of the hyper-parameters if one of them has changed"""
        ...
    def read_state(self) -> None:
        """Collects the optimizer's state of each parameter, and the numbers of the parameters whose state is missing"""
        ...
    def _move_counts(self, p: Any) -> None:
        """A CUDA graph takes nothing from the CPU, where optimizers keep their step counts"""
        ...
    def restore_counts(self) -> None:
        """Moves the optimizer's step counts back to the device where the optimizer had them"""
        ...
    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the program: all that the compiled code depends on"""
        ...
