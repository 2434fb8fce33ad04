# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Record what the layers of a model receive and return: `Hook`, `Hooks`, `hook_output`"""
from collections.abc import Callable, Iterable, Iterator
from .._fastcore import L
from torch import nn
from typing import Any, Self

__all__ = ['Hook', 'Hooks', 'hook_output', 'hook_outputs']
class Hook:
    """Calls `hook_func(module, input, output)` after each call of the module `m`, and keeps its result in `stored`"""
    hook_func: Callable[..., Any]
    detach: bool
    cpu: bool
    gather: bool
    removed: bool
    _stored: Any
    hook: Any
    def __init__(
        self,
        m: nn.Module,
        hook_func: Callable[..., Any],
        is_forward: bool = True,
        detach: bool = True,
        cpu: bool = False,
        gather: bool = False,
    ) -> None:
        """Calls `hook_func(module, input, output)` after each call of the module `m`, and keeps its result in `stored`

        Args:
            m: the module to hook
            hook_func: called with (module, input, output); in a backward pass these are gradients
            is_forward: hook the forward pass; False: the backward pass
            detach: detach the tensors from the graph before `hook_func` gets them
            cpu: copy the result to the CPU when `stored` is read (only with `detach`)
            gather: gather the tensors of all processes first, and wait for them (only with `detach`)

        Raises:
            TypeError: a hook is for a module of the model
        """
        ...
    def hook_fn(self, module: nn.Module, input: Any, output: Any) -> None:
        """Store the result of `hook_func`: the function that PyTorch calls

        Args:
            module: the module that was called
            input: its inputs, or their gradients
            output: its output, or the gradients of it
        """
        ...
    @property
    def stored(self) -> Any:
        """The last result of `hook_func`; None if it was not called"""
        ...
    def remove(self) -> None:
        """Remove the hook from the module; a second call does nothing"""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: Any) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
class Hooks:
    """A `Hook` on each of several modules, all with the same `hook_func`"""
    hooks: list[Any]
    def __init__(
        self,
        ms: Iterable[nn.Module],
        hook_func: Callable[..., Any],
        is_forward: bool = True,
        detach: bool = True,
        cpu: bool = False,
        gather: bool = False,
    ) -> None:
        """A `Hook` on each of several modules, all with the same `hook_func`

        Args:
            ms: the modules to hook
            hook_func: called with (module, input, output)
            is_forward: hook the forward pass; False: the backward pass
            detach: detach the tensors from the graph before `hook_func` gets them
            cpu: copy the results to the CPU when `stored` is read (only with `detach`)
            gather: gather the tensors of all processes first, and wait for them (only with `detach`)

        Raises:
            TypeError: hooks are for a list of modules, such as `[*model.children()]`
        """
        ...
    def __getitem__(self, i: Any) -> Hook: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Hook]: ...
    @property
    def stored(self) -> L:
        """The last result of each hook, in the order of the modules"""
        ...
    def remove(self) -> None:
        """Remove all hooks"""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: Any) -> None: ...
def _output(m: Any, i: Any, o: Any) -> Any: ...
def hook_output(module: nn.Module, detach: bool = True, cpu: bool = False, grad: bool = False) -> Hook:
    """Returns a `Hook` that stores the output of `module`

    Args:
        module: the module to hook
        detach: detach the output from the graph
        cpu: copy it to the CPU when `stored` is read
        grad: store the gradients of the output, a tuple, instead of the output
    """
    ...
def hook_outputs(modules: Iterable[nn.Module], detach: bool = True, cpu: bool = False, grad: bool = False) -> Hooks:
    """Returns `Hooks` that store the output of each module

    Args:
        modules: the modules to hook
        detach: detach the outputs from the graph
        cpu: copy them to the CPU when `stored` is read
        grad: store the gradients of the outputs, tuples, instead of the outputs
    """
    ...
