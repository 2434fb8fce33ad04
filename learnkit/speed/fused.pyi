# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Where nobody listens, the inside of a batch is one compiled callable"""
from ..callback import Callback
from ..events import CancelBatch
from .compiled import Formula
from typing import Any

__all__ = ['Fused', 'FusedStep']
class Fused(CancelBatch):
    """The batch is done, by a compiled step"""
class FusedStep(Callback):
    """Runs the inside of a batch as one compiled callable, as long as nobody listens there"""
    patched: Any
    heard: Any
    part: str|None
    bound: Bound|None
    failed: str|None
    max_shapes: int
    options: dict[Any, Any]|None
    shapes: list[Any]
    missing: Any
    programs: dict[Any, Any]
    said: set[Any]
    counts: dict[Any, Any]
    clips: list[Any]
    amp: Any
    def __init__(self, shapes: int = 1, options: dict[Any, Any]|None = None) -> None:
        """Runs the inside of a batch as one compiled callable, as long as nobody listens there

        Args:
            shapes: compile for so many shapes of batches; others are run eagerly
            options: inductor's, for `torch.compile`; None: its C++ wrapper on the CPU, CUDA graphs on a GPU (untested)
        """
        ...
    def before_fit(self) -> None: ...
    def _patch(self) -> None:
        """Have the compiler take the backward pass too, and make a program a shape; where this PyTorch can"""
        ...
    def before_batch(self) -> None: ...
    def after_fit(self) -> None: ...
    def cleanup(self) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def _shapes(self) -> Any: ...
    def _say(self, why: Any, how: str = 'is not fused') -> None:
        """Once a fit"""
        ...
    def _listen(self) -> None:
        """Which part of a batch can be left to a program: 'whole', 'gradients', or None"""
        ...
    def _ready(self, learn: Any) -> Any:
        """The shape of this batch, if it can be fused, else None"""
        ...
    def _program(self, options: Any) -> Any:
        """A callable that is compiled when it is called"""
        ...
    def _options(self, device: Any) -> Any:
        """What to try, one after the other"""
        ...
    def _compile(self, fn: Any, args: Any, shape: Any) -> Any:
        """The first call for a shape; what it has drawn at random is given back if it fails"""
        ...
    def _run(self, learn: Any, shape: Any) -> Any:
        """Prediction, loss and what else there is, of a compiled batch; None if it can't be compiled"""
        ...
_inside: list[Any]
_early: list[Any]
_late: Any
_own: tuple[Any, ...]
def is_bf16(cb: Any) -> bool:
    """Is `cb` mixed precision that scales nothing, so that all it does is the type?"""
    ...
def torch_opt(learn: Any) -> Any:
    """The optimizer inside of `learn.opt`; a wrapper of another kind has a step of its own"""
    ...
def own_formula(learn: Any) -> Formula|None:
    """How the Learner's optimizer steps; None if nobody knows"""
    ...
def obstacle(learn: Any) -> str|None:
    """Why the Learner's batches can't be compiled; None if nothing is known that speaks against it"""
    ...
def modules_of(learn: Any) -> list[Any]:
    """Those of the model, and of a loss function that is a module too"""
    ...
class Bound:
    """What a compiled batch works on besides the batch"""
    model: Any
    loss_func: Any
    wrapper: Any
    opt: Any
    all: Any
    state: Any
    modules: Any
    trained: list[Any]
    others: list[Any]
    params: list[Any]
    group_of: tuple[Any, ...]
    formula: Formula|None
    clips: list[Any]
    amp: tuple[Any, ...]|None
    moved: list[Any]
    cuda: Any
    program: Any
    numbers: Any
    h: Any
    kinds: Any
    missing: list[Any]
    states: list[Any]
    kept: list[Any]
    n_state: int
    def __init__(self, learn: Any, formula: Formula|None, clips: list[Any], amp: tuple[Any, ...]|None) -> None:
        """What a compiled batch works on besides the batch

        Args:
            learn: the Learner
            formula: how its optimizer steps; None: only gradients are wanted
            clips: the `GradientClip`s among its callbacks
            amp: device type and 16-bit type of its `MixedPrecision`
        """
        ...
    def fresh(self, learn: Any) -> bool:
        """Are these still the right ones?"""
        ...
    def quiet(self) -> bool:
        """No gradients from before, to which those of this batch are to be added, and no hook, which a program would not call?"""
        ...
    def read_hypers(self) -> None:
        """Make a new tensor of the hyper-parameters, if one of them has changed"""
        ...
    def gather(self) -> None:
        """The optimizer's state of each parameter, and the numbers of those for which there should be one, and is none"""
        ...
    def give_back(self) -> None:
        """The optimizer's step counts, to where the optimizer had them"""
        ...
    @property
    def key(self) -> tuple[Any, ...]:
        """What a program depends on; with another key it is another program"""
        ...
def while_compiling(e: Exception) -> bool:
    """Was `e` raised by the compiler, or by what it looked into, before anything was computed?"""
    ...
def what_failed(e: Exception) -> str:
    """What the compiler had to say, in short"""
    ...
