# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The settings of PyTorch for compiled train steps, and the folder in which it keeps programs between processes"""
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ['kept_programs']
def instruction_sets() -> str:
    """Returns the instruction sets that compiled code may use on this processor"""
    ...
@contextmanager
def _compile_config() -> Iterator[None]: ...
def compile_config() -> AbstractContextManager[Any]|None:
    """Returns a context that lets backward passes be compiled, a program for each shape; `None` if PyTorch is too old"""
    ...
_names: Any
_own: tuple[Any, ...]
def foreign_guards(guards: list[Any]) -> list[bool]:
    """Returns for each guard whether it is about something else than the parts of a train step

    Args:
        guards: the guards of a program, for `torch.compile`
    """
    ...
def compile_options(options: dict[Any, Any]|None = None) -> list[dict[Any, Any]]:
    """Returns the options of inductor for a program, in the order in which they are tried

    Args:
        options: options of inductor that the user gave; None: those for the CPU
    """
    ...
class KeptPrograms(NamedTuple):
    """The folder in which PyTorch keeps compiled programs, and its size"""
    folder: Path
    size: int
    def __str__(self) -> str: ...
def kept_programs() -> KeptPrograms:
    """Returns where the compiled programs of all processes are kept, and how many bytes that are"""
    ...
