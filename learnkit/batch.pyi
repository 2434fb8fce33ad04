# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The number of items in a batch, its shapes, its precision, and its split into inputs and targets"""
import torch
from collections.abc import Iterator
from torch import Tensor
from typing import Any

__all__ = ['find_bs', 'find_device', 'to_float', 'to_half', 'to_np', 'flatten_check', 'OnlyInputs', 'Inputs',
           'split_batch', 'shapes']
def _lists(b: Any) -> Iterator[Any]:
    """The lists in the batch `b`, from left to right"""
    ...
def _is_one_each(o: Any) -> Any:
    """Has the list `o` an entry for each item: mappings, or tensors of different lengths, which cannot be of one batch?"""
    ...
def find_bs(b: Any) -> int:
    """Returns the batch size: the length of the first tensor in `b`; raises ValueError if there is no tensor

    Args:
        b: a batch

    Raises:
        ValueError: The size of a batch is the length of its first tensor, but this … holds none.
    """
    ...
def find_device(b: Any) -> torch.device|None:
    """Returns the device of the first tensor in `b`, `None` if there is no tensor

    Args:
        b: a batch
    """
    ...
def _cast(b: Any, to: Any) -> Any: ...
def to_float(b: Any) -> Any:
    """Converts the floating-point tensors in `b` to `float32`

    Args:
        b: tensors in nested containers
    """
    ...
def to_half(b: Any) -> Any:
    """Converts the floating-point tensors in `b` to `float16`

    Args:
        b: tensors in nested containers
    """
    ...
def to_np(b: Any) -> Any:
    """Converts the tensors in `b` to NumPy arrays

    Args:
        b: tensors in nested containers
    """
    ...
def flatten_check(inp: Tensor, targ: Tensor) -> tuple[Tensor, Tensor]:
    """Flattens predictions and targets to vectors; raises ValueError if they differ in their number of values

    Args:
        inp: predictions
        targ: targets, with the same number of values

    Raises:
        ValueError: Predictions and targets must have the same number of values, not shapes … and ….
    """
    ...
class OnlyInputs(tuple[Any, ...]):
    """A batch whose elements are all inputs, unless `n_inp` says otherwise"""
class Inputs(dict[Any, Any]):
    """Inputs by name, for `model(**inputs)`"""
    targ_names: tuple[Any, ...]
    def with_targs(self, yb: tuple[Any, ...]) -> dict[Any, Any]:
        """Returns the inputs together with the targets `yb`, under the names that these had in the batch

        Args:
            yb: the targets, in the order of `targ_names`
        """
        ...
_targ_names: tuple[Any, ...]
def _split_mapping(b: Any, n_inp: Any) -> tuple[Any, ...]: ...
def _bad_batch(b: Any, n_inp: Any) -> Any:
    """The exception that says what is wrong with `b`"""
    ...
def split_batch(b: Any, n_inp: int|None = None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Splits a batch into `(inputs, targets)`; raises TypeError or ValueError if it is not a batch, or too short

    Args:
        b: a tuple or list, a tensor, or a mapping
        n_inp: how many elements go to the model; `None`: all but the last
    """
    ...
def _dims(t: Any) -> Any:
    """The lengths of the dimensions of `t`, `*` where they differ from item to item"""
    ...
def _kind(o: Any) -> Any:
    """The layout of a tensor that is not dense, the type of any other object"""
    ...
def _leaf_shape(o: Any, dtype: Any) -> Any:
    """The shape of a tensor or an array; for other objects, the name of their type"""
    ...
def shapes(b: Any, dtype: bool = True) -> str:
    """Returns the shapes and types of the tensors in `b` as text, for messages and tables

    Args:
        b: tensors and other objects in nested tuples, lists and mappings
        dtype: with types, `float32[8, 4]`, for messages; False: without, `8 x 4`, for tables
    """
    ...
