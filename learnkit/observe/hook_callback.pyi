# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Hooks on the layers of the model for the duration of a run"""
from collections.abc import Callable
from ..callback import Callback
from .hooks import Hooks
from typing import Any

__all__ = ['HookCallback']
def _is_compiled(model: Any) -> Any:
    """Is `model`, or a module in it, compiled, by a wrapper or in place?"""
    ...
class HookCallback(Callback):
    """Puts a `Hook` on each layer, which calls `hook(m, i, o)` (semantics of fastai's `HookCallback`)"""
    hook: Callable[..., Any]
    asked_modules: Any
    modules: Any
    hooks: Hooks|None
    stance: Any
    compiled: Any
    hooked: bool
    every: int|None
    remove_end: bool
    is_forward: bool
    detach: bool
    cpu: bool
    include_paramless: bool
    def __init__(
        self,
        modules: Any = None,
        every: int|None = None,
        remove_end: bool = True,
        is_forward: bool = True,
        detach: bool = True,
        cpu: bool = True,
        include_paramless: bool = False,
        **kwargs: Any,
    ) -> None:
        """Puts a `Hook` on each layer, which calls `hook(m, i, o)` (semantics of fastai's `HookCallback`)

        Args:
            modules: the modules to hook; None: all layers that have parameters
            every: record every n-th training batch only; None: all batches, of validation too
            remove_end: remove the hooks at the end of the run
            is_forward: hook the forward pass; False: the backward pass
            detach: detach the tensors from the graph before `hook` gets them
            cpu: copy the results to the CPU when `stored` is read
            include_paramless: with `modules=None`: hook layers without parameters too
            kwargs: `hook=` a function of (module, input, output), or events as in `Callback`

        Raises:
            ValueError: `every` must be a number of batches, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_batch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _due(self) -> Any:
        """Is this training batch to be recorded?"""
        ...
    def _layers(self, model: Any) -> Any:
        """The layers to hook; raises ValueError if there are none

        Raises:
            ValueError: … has nothing to hook, since no layer of … has parameters: pass `include_paramless=True`, or the …
        """
        ...
    def _register(self) -> None:
        """Put the hooks on the model, and stop compiled code from running"""
        ...
    def _remove(self) -> None:
        """Remove the hooks"""
        ...
    def _restore_stance(self) -> None:
        """Let compiled code run again"""
        ...
