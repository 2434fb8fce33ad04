# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Note all that objects keep, and restore it: attributes, lists and dictionaries, tensors and generators"""
import torch
from collections.abc import Iterable, Iterator
from functools import partial
from .snapshot import Snapshot
from torch import nn
from types import FunctionType, MethodType
from typing import Any

def _distinct(t: Any) -> Any:
    """The elements of `t` that are not repeats by `expand`"""
    ...
def snapshot_tensor(t: torch.Tensor) -> Snapshot:
    """Take a snapshot of the values of `t`, and of its gradient, which must not be changed in place

    Args:
        t: a tensor
    """
    ...
_elsewhere: tuple[Any, ...]
def _root(cls: Any) -> Any: ...
def _standard(cls: Any) -> bool: ...
def _out_of_reach(o: Any) -> Any:
    """An attribute of `o` whose state no snapshot can put back, if any"""
    ...
def snapshot_vars(o: Any, careful: bool = False) -> Snapshot:
    """Take a snapshot of which objects the attributes of `o` are

    Args:
        o: an object with attributes
        careful: look for what cannot be turned back?
    """
    ...
_own: tuple[Any, ...]
def is_foreign(cls: type[Any]) -> bool:
    """Does `cls` belong to Python or to an installed library?

    Args:
        cls: a class
    """
    ...
def _has_state(o: Any, as_data: Any) -> Any:
    """May the attributes of `o` be put back?"""
    ...
def _stands_above(o: Any) -> Any: ...
_wrappers: tuple[Any, ...]
_hooks: Any
def _of_module(m: nn.Module) -> tuple[Snapshot, list[Any]]:
    """What is noted of a module, and where to go on; of wrappers such as DDP only what they share with the model"""
    ...
def _cell(c: Any) -> list[Any]: ...
def of_function(f: FunctionType|MethodType|partial[Any]) -> list[Any]:
    """Return what `f` refers to: its object, its arguments, its closure

    Args:
        f: a function
    """
    ...
_generators: Any
_data: Any
_all: Any
_many: int
def _of_container(o: Any, depth: Any, given: Any) -> tuple[Any, ...]: ...
def _of_object(o: Any, depth: Any, given: Any) -> tuple[Any, ...]: ...
def _contents(o: Any, depth: Any, given: Any) -> Any:
    """What is noted of `o`, where to go on, and at which depth"""
    ...
_constant: set[Any]
def snapshot_contents(*objects: Any, loaders: Iterable[Any] = (), leave: Iterable[Any] = ()) -> Snapshot:
    """Take a snapshot of all that is kept in `objects` and `loaders`; until it is restored, loaders have other workers

    Args:
        objects: models, callbacks, anything
        loaders: loaders, whose contents are data
        leave: parameters that are not noted
    """
    ...
def _walk(todo: Any, known: Any = (), params: Any = ()) -> Iterator[Any]:
    """Each object within those of `todo`, and what is noted of it; but what is `known`, and `params`, only if given"""
    ...
def _parts_of(dl: Any) -> list[Any]:
    """A loader, its samplers and its data set"""
    ...
def generators_in(*objects: Any) -> list[Any]:
    """Return the random number generators that are kept in `objects`

    Args:
        objects: data sets, functions that make batches
    """
    ...
def snapshot_loader(dl: Any) -> Snapshot:
    """Take a snapshot of what reading `dl` changes in it, in its samplers and its data set

    Args:
        dl: a loader
    """
    ...
def snapshot_forward(model: nn.Module, dl: Any = None) -> Snapshot:
    """Take a snapshot of all that forward passes change in the model and in the loader, and of random numbers

    Args:
        model: the model
        dl: a loader that batches are taken from; None: none
    """
    ...
