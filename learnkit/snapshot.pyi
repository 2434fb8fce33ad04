# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Note the state of models, loaders and random number generators, and restore it later"""
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from torch import nn
from typing import Any, Self

class Snapshot:
    """States that were noted; restores them with `restore`, or at the end of a `with` block"""
    parts: Any
    block: Any
    def __init__(self, *parts: Snapshot|Callable[..., Any]) -> None:
        """States that were noted; restores them with `restore`, or at the end of a `with` block

        Args:
            parts: snapshots, or functions that restore something; the last is restored first
        """
        ...
    def restore(self) -> None:
        """Restore all parts, in reverse order; raises the first error when all are done, with further errors as notes"""
        ...
    @contextmanager
    def _restored(self) -> Iterator[None]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: Any) -> None: ...
def snapshot_attributes(o: Any, *names: str) -> Snapshot:
    """Take a snapshot of some attributes of `o`: the same objects, whose contents are not copied

    Args:
        o: an object
        names: its attributes
    """
    ...
containers: tuple[Any, ...]
def python_class(cls: type[Any]) -> type[Any]:
    """Return the class of Python's own that `cls` is, or inherits from

    Args:
        cls: a class of containers
    """
    ...
def entries(o: Any) -> list[Any]:
    """Return what is in `o`, of a dictionary each key and then its value; no method of the container's own is called

    Args:
        o: a container
    """
    ...
def snapshot_entries(o: list[Any]|deque[Any]|dict[Any, Any]|set[Any]) -> Snapshot:
    """Take a snapshot of which objects are in `o`

    Args:
        o: a container
    """
    ...
def snapshot_tensors(d: dict[Any, Any]) -> Snapshot:
    """Take a snapshot of the tensors in `d`: the same objects, with the same values

    Args:
        d: tensors by name; other values are put back as they are
    """
    ...
def snapshot_buffers(model: nn.Module) -> Snapshot:
    """Take a snapshot of the buffers of `model`, such as the running averages of batch norms

    Args:
        model: the model
    """
    ...
def snapshot_grads(params: Iterable[Any], copy: bool = False) -> Snapshot:
    """Take a snapshot of the gradients of parameters

    Args:
        params: parameters
        copy: copy the gradients? Without a copy they must not be changed in place
    """
    ...
def snapshot_random() -> Snapshot:
    """Take a snapshot of the generators of Python, NumPy, PyTorch and all devices; restored if no other thread has a run"""
    ...
def snapshot_generator(g: Any) -> Snapshot:
    """Take a snapshot of the state of one random number generator; an empty one of anything else

    Args:
        g: a generator of Python, NumPy or PyTorch
    """
    ...
