# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""GradientClip: limits the norm of the gradients, or each of their elements, before the optimizer step"""
from ..callback import Callback
from typing import Any

__all__ = ['GradientClip']
class GradientClip(Callback):
    """Clips gradients before each step: their norm to `max_norm`, or each element to ±`value` (fastai's name and order)"""
    norm: Any
    mixed: Any
    together: bool
    max_norm: float|None
    norm_type: float
    value: float|None
    def __init__(self, max_norm: float|None = 1.0, norm_type: float = 2.0, value: float|None = None) -> None:
        """Clips gradients before each step: their norm to `max_norm`, or each element to ±`value` (fastai's name and order)

        Args:
            max_norm: the largest norm of all gradients together; None: `value` says how to clip
            norm_type: which norm: 2 is the Euclidean, `inf` the largest element
            value: the largest absolute value of an element; if given, it replaces `max_norm`

        Raises:
            ValueError: GradientClip: `…` must be a number above 0
            ValueError: GradientClip: give `max_norm` or `value`
        """
        ...
    def before_train(self) -> None: ...
    def before_step(self) -> None: ...
    def _clip_mixed(self, params: Any) -> None:
        """Clip sharded parameters, and those that are whole in each process: PyTorch does not take them together"""
        ...
