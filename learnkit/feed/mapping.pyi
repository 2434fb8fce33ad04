# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Batches and outputs under other names, modules that follow the model, and errors that name the items"""
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from ..callback import Callback
from typing import Any

__all__ = ['MapInputs', 'MapOutputs', 'modules_in', 'MoveModules', 'ItemIndices', 'CheckEvents']
def check_mapping(f: Any) -> None:
    """Raise an error if `f` is neither a function nor a dictionary of names"""
    ...
def renamed(d: Any, names: Mapping[Any, Any], what: str = 'batch') -> dict[Any, Any]:
    """`d` under new names; raises an error for a key that is not there, or would be there twice

    Args:
        d: a mapping, such as a batch or a model's output
        names: its keys, and what they become
        what: what it is, for messages
    """
    ...
class MapInputs(Callback):
    """`learn.batch = f(learn.batch)`"""
    f: Any
    def __init__(self, f: Callable[..., Any]|Mapping[Any, Any], train: bool = True, valid: bool = True) -> None:
        """`learn.batch = f(learn.batch)`

        Args:
            f: a function of the batch, or names of its keys and what they become
            train: for the batches of training
            valid: for those of validation and prediction
        """
        ...
    def after_fetch(self) -> None: ...
class MapOutputs(Callback):
    """`learn.pred = f(learn.pred)`"""
    f: Any
    def __init__(self, f: Callable[..., Any]|Mapping[Any, Any], train: bool = True, valid: bool = True) -> None:
        """`learn.pred = f(learn.pred)`

        Args:
            f: a function of the model's output, or names of its keys and what they become
            train: in training
            valid: in validation and prediction
        """
        ...
    def after_pred(self) -> None: ...
def modules_in(o: Any) -> list[Any]:
    """The modules that are attributes of `o`, or in a list, tuple or dictionary that is one; of a `partial`, its function and arguments"""
    ...
class MoveModules(Callback):
    """Moves modules outside of the model to the model's device"""
    def before_fit(self) -> None: ...
class Given:
    """A sampler that remembers what it gave, until it's asked for that"""
    sampler: Any
    given: Any
    def __init__(self, sampler: Any) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def _giving(self, given: Any) -> Iterator[Any]: ...
class Batches:
    """An iterator of batches that knows the `indices` of the last one"""
    it: Iterator[Any]
    given: deque[Any]
    owner: Any
    indices: Any
    def __init__(self, it: Iterator[Any], given: deque[Any], owner: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
class Indexed:
    """A loader whose iterators are `Batches`"""
    dl: Any
    owner: Any
    loader: Any
    sampler_of: Given|None
    def __init__(self, dl: Any, owner: Any) -> None:
        """A loader whose iterators are `Batches`

        Args:
            dl: a `DataLoader`, or a loader that says in `batch_indices` what it is going to give
            owner: is told the latest `Batches` that gave something
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def generator(self) -> Any: ...
    @generator.setter
    def generator(self, g: Any) -> None: ...
    def __len__(self) -> int: ...
def says_indices(dl: Any) -> bool:
    """Can it be known which items are in the batches of `dl`?"""
    ...
class ItemIndices(Callback):
    """Keeps the indices of the batch's items in `learn.indices`, and adds them to exceptions"""
    latest: Any
    show: int
    kept: dict[Any, Any]
    outer: list[Any]
    def __init__(self, show: int = 128) -> None:
        """Keeps the indices of the batch's items in `learn.indices`, and adds them to exceptions

        Args:
            show: so many indices are shown in a message
        """
        ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def after_train(self) -> None: ...
    before_validate = before_train
    after_validate = after_train
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
_parts: Any
_fired: Any
class CheckEvents(Callback):
    """Warns if a replaced part of the loop does not fire an event that some callback hears"""
    seen: set[Any]|None
    replaced: tuple[Any, ...]|list[Any]
    def before_fit(self) -> None: ...
    def after_train(self) -> Any: ...
    def _waiting_for(self, e: Any) -> list[Any]: ...
    def cleanup(self) -> None: ...
