# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Measures what a training step costs eagerly and fused, and after how many steps compiling has paid off"""
from .fused_step import FusedStep
from typing import Any, NamedTuple

class FusedProfile(NamedTuple):
    """The seconds that a training step takes eagerly and fused, and those of compiling it"""
    eager: float
    fused: float|None
    """None: no batch was fused"""
    compiling: float|None
    why: str
    """what was said about batches that are not fused, or not completely"""
    @property
    def pays_off(self) -> int|None:
        """The number of steps after which compiling has paid off; `None` if it never does"""
        ...
    def __str__(self) -> str: ...
class EveryOther(FusedStep):
    """Fuses every other batch, and measures all"""
    times: dict[Any, Any]
    why: Any
    def __init__(self, **kw: Any) -> None:
        """Fuses every other batch, and measures all

        Args:
            kw: the arguments of `FusedStep`
        """
        ...
    def _do_batch(self, do: Any) -> Any: ...
    def _now(self) -> Any: ...
    def _warn(self, why: Any, how: str = 'is not fused') -> None: ...
    @property
    def result(self) -> FusedProfile:
        """The medians; the first fused batch was compiled. Raises ValueError if there were too few batches.

        Raises:
            ValueError: there are too few batches to compare: an epoch must have 10 or more, or make more epochs (`n_epoch`)
        """
        ...
