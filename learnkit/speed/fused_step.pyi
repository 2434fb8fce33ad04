# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""FusedStep: train on a batch with one compiled program, as long as no callback needs to look inside"""
from collections.abc import Callable
from ..callback import Callback
from ..learner import Learner
from .step_compiler import StepCompiler
from typing import Any

__all__ = ['FusedStep']
class FusedStep(Callback):
    """Trains on a batch with one compiled call (`torch.compile`), as long as no callback has handlers inside the batch"""
    config: Any
    handlers_seen: Any
    part: str|None
    failure: str|None
    accumulation: Any
    inputs: Any
    """the `StepInputs` of the batches at hand"""
    afterwards: Any
    """what is called after a step that was done as a whole"""
    max_shapes: Any
    dynamic: bool
    compiler: StepCompiler
    shapes: list[Any]
    missing_state: Any
    warned: set[Any]
    counts: dict[Any, Any]
    clips: list[Any]
    amp: Any
    optim: Any
    def __init__(self, max_shapes: int = 1, options: dict[Any, Any]|None = None, dynamic: bool = False) -> None:
        """Trains on a batch with one compiled call (`torch.compile`), as long as no callback has handlers inside the batch

        Args:
            max_shapes: the number of batch shapes to compile for; batches of other shapes run eagerly
            options: options of inductor; None: its C++ wrapper. A GPU, where this is untested, needs them
            dynamic: compile sizes that vary as variables, so one program takes batches of any such shape?

        Raises:
            ValueError: `max_shapes` must be a number of batch shapes, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def wrap_batch(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Args:
            do: does one batch, eagerly
        """
        ...
    def _do_batch(self, do: Any) -> Any: ...
    def _step_eagerly(self, learn: Any, grads: Any) -> None: ...
    def after_fit(self) -> None: ...
    def cleanup(self) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def _warn(self, why: Any, how: str = 'is not fused') -> None:
        """Once a fit"""
        ...
    def _choose_part(self, do: Any) -> None:
        """Sets `part`, the part of a batch that can be compiled: 'whole', 'gradients' or None"""
        ...
    def _untested(self) -> str: ...
    def _fusable_shape(self, learn: Any) -> Any:
        """The shape of this batch if it can be fused, else None"""
        ...
    def _drop_inputs(self, do: Any) -> Any:
        """Something was replaced since the last batch; with another model, loss or optimizer the answer may be another, too"""
        ...
    def _new_inputs(self, learn: Any) -> Any: ...
_inside: list[Any]
_early: Any
_late: Any
_steps: tuple[Any, ...]
_known: tuple[Any, ...]
def is_bf16(cb: Callback) -> bool:
    """Returns whether `cb` is a `MixedPrecision` without loss scaling, so that all it does is to choose the types

    Args:
        cb: a callback
    """
    ...
def compile_obstacle(learn: Learner) -> str|None:
    """Returns why the Learner's batches cannot be compiled; `None` if no reason is known

    Args:
        learn: the Learner
    """
    ...
