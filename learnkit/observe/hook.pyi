# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Look into a model while it runs: functions that see what a layer gets and gives"""
from collections.abc import Callable, Iterator
from .._fastcore import L
from ..callback import Callback
from torch import nn
from typing import Any, Self

__all__ = ['Hook', 'Hooks', 'hook_output', 'hook_outputs', 'HookCallback']
class Hook:
    """Calls `hook_func(module, input, output)` each time that `m` was called, and keeps what it returns in `stored`"""
    removed: bool
    _stored: Any
    hook: Any
    hook_func: Callable[..., Any]
    detach: bool
    cpu: bool
    gather: bool
    def __init__(
        self,
        m: nn.Module,
        hook_func: Callable[..., Any],
        is_forward: bool = True,
        detach: bool = True,
        cpu: bool = False,
        gather: bool = False,
    ) -> None:
        """Calls `hook_func(module, input, output)` each time that `m` was called, and keeps what it returns in `stored`

        Args:
            m: the module to look at
            hook_func: called with (module, input, output); in a backward pass with (module, its input's gradients, its output's)
            is_forward: look at the forward pass, or at the backward pass?
            detach: give `hook_func` tensors that don't hold the graph
            cpu: bring what is stored to the CPU, when it is looked at (only with `detach`)
            gather: join the tensors of all processes first (only with `detach`; this waits for them)
        """
        ...
    def hook_fn(self, module: nn.Module, input: Any, output: Any) -> None:
        """What PyTorch calls"""
        ...
    @property
    def stored(self) -> Any:
        """What `hook_func` returned last, None if it was not called"""
        ...
    def remove(self) -> None:
        """Take the hook off the module; doing it twice does no harm"""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: Any) -> None: ...
    def __getstate__(self) -> Any:
        """Args:
            self: a copy sees nothing
        """
        ...
class Hooks:
    """A `Hook` on each of the modules `ms`, with the same `hook_func`"""
    hooks: list[Any]
    def __init__(
        self,
        ms: Any,
        hook_func: Callable[..., Any],
        is_forward: bool = True,
        detach: bool = True,
        cpu: bool = False,
        gather: bool = False,
    ) -> None:
        """A `Hook` on each of the modules `ms`, with the same `hook_func`

        Args:
            ms: modules
            hook_func: called with (module, input, output)
            is_forward: this and the rest as in `Hook`
        """
        ...
    def __getitem__(self, i: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def stored(self) -> L:
        """What each hook stored"""
        ...
    def remove(self) -> None:
        """Take all hooks off"""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: Any) -> None: ...
def _output(m: Any, i: Any, o: Any) -> Any: ...
def hook_output(module: nn.Module, detach: bool = True, cpu: bool = False, grad: bool = False) -> Hook:
    """A hook that stores what `module` gives

    Args:
        module: the module
        detach: without the graph
        cpu: on the CPU, when it is looked at
        grad: the gradients of the output, a tuple, in place of the output
    """
    ...
def hook_outputs(modules: Any, detach: bool = True, cpu: bool = False, grad: bool = False) -> Hooks:
    """Hooks that store what each of `modules` gives

    Args:
        modules: modules
        detach: this and the rest as in `hook_output`
    """
    ...
def _is_compiled(model: Any) -> Any:
    """Is `model`, or a module in it, compiled, in a wrapper or in place?"""
    ...
class HookCallback(Callback):
    """Calls `hook(m, i, o)` whenever a layer was called; see `Hook` (semantics of fastai's `HookCallback`)"""
    hook: Callable[..., Any]
    given: Any
    modules: Any
    hooks: Hooks|None
    stance: Any
    compiled: Any
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
        """Calls `hook(m, i, o)` whenever a layer was called; see `Hook` (semantics of fastai's `HookCallback`)

        Args:
            modules: modules to look at; None: all layers that have parameters
            every: look at every n-th training batch; None: at all batches, of validation too
            remove_end: take the hooks off after the run
            is_forward: look at the forward pass, or at the backward pass?
            detach: give `hook` tensors that don't hold the graph
            cpu: what is stored comes to the CPU when it is looked at
            include_paramless: with `modules=None`: look at layers without parameters, too
            kwargs: `hook=` a function of (module, input, output), or events as in `Callback`
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_batch(self) -> None: ...
    def cleanup(self) -> None: ...
    def _due(self) -> Any: ...
    def _layers(self, model: Any) -> Any: ...
    def _register(self) -> None: ...
    def _remove(self) -> None: ...
    def _compile_again(self) -> None: ...
