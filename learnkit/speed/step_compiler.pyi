# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Compile train steps with `torch.compile`, keep the programs, and recognize a compilation that failed"""
import torch
from collections.abc import Iterator
from .step_inputs import StepInputs
from ..stateful import Stateful
from torch import nn
from types import FunctionType
from typing import Any

class CompileError(Exception):
    """A train step could not be compiled; nothing was computed"""
def is_compile_error(e: Exception) -> bool:
    """Returns whether `e` was raised by the compiler, or by code that it was tracing, before anything was computed

    Args:
        e: what calling a compiled function raised
    """
    ...
def describe_compile_error(e: Exception) -> str:
    """Returns the compiler's message in one line

    Args:
        e: an exception for which `is_compile_error` is true
    """
    ...
class Program:
    """A compiled train step, with pieces of code for each shape of batches"""
    f: Any
    compiled: Any
    codes: dict[Any, Any]
    shapes: set[Any]
    dynamo: Any
    enclosed: dict[Any, Any]
    def __init__(self, train_step: FunctionType, **kw: Any) -> None:
        """A compiled train step, with pieces of code for each shape of batches

        Args:
            train_step: what is compiled
            kw: how: arguments of `torch.compile`
        """
        ...
    def __call__(
        self,
        shape: tuple[Any, ...],
        xb: tuple[Any, ...],
        yb: tuple[Any, ...],
        params: list[Any],
        states: list[Any],
        hypers: torch.Tensor,
    ) -> tuple[Any, ...]:
        """Return what the train step returns; compiles what is not compiled yet

        Args:
            shape: the shapes of the batch, with None for each size that varies
            xb: the arguments of the train step: inputs,
            yb: targets,
            params: what is trained,
            states: the optimizer's state of each,
            hypers: the hyper-parameters
        """
        ...
    def _entries(self) -> Any:
        """All that the compiler made of the code of train steps, those of other models included"""
        ...
    def _function(self, code: Any) -> Any:
        """`code` as a function, which calls the program itself: the compiler is off, and need not be turned off for it"""
        ...
class StepCompiler(Stateful):
    """Compiles train steps, runs them, and keeps the programs"""
    limit: int
    options: dict[Any, Any]|None
    programs: dict[Any, Any]
    no_grad: Any
    def __init__(self, limit: int = 4, options: dict[Any, Any]|None = None) -> None:
        """Compiles train steps, runs them, and keeps the programs

        Args:
            limit: how often a program may be compiled anew, as something that it depends on has changed
            options: options of inductor for `torch.compile`; None: those for the device
        """
        ...
    def __call__(
        self,
        inputs: StepInputs,
        xb: tuple[Any, ...],
        yb: tuple[Any, ...],
        shape: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Runs the compiled step on a batch, returns prediction, loss, and norms or gradients; raises CompileError

        Args:
            inputs: what the step works on besides the batch
            xb: the inputs of the batch
            yb: its targets
            shape: the shapes of all these tensors, with None for each size that varies

        Raises:
            CompileError
        """
        ...
    def _compile(self, program: Any, inputs: Any, args: Any, shape: Any) -> Any:
        """The first call for a shape"""
        ...
    def _candidates(self, inputs: Any) -> Iterator[Any]:
        """Programs that are compiled when they are called, one for each set of options to try"""
        ...
    def _program(self, inputs: Any, options: Any) -> Any: ...
    def forget_others(self, model: nn.Module) -> None:
        """Drops the programs of all other models, which would keep these models in memory

        Args:
            model: the model whose programs are kept
        """
        ...
    def __getstate__(self) -> dict[Any, Any]: ...
def _clone(o: Any) -> Any: ...
