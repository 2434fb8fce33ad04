# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""How many items a batch has, its shapes, its precision, and what is input and what is target"""
import torch
from torch import Tensor
from typing import Any

__all__ = ['find_bs', 'find_device', 'to_float', 'to_half', 'to_np', 'flatten_check', 'Inputs', 'split_batch', 'shapes']
def find_bs(b: Any) -> int:
    """The number of items in the batch `b`: the length of its first tensor"""
    ...
def find_device(b: Any) -> torch.device|None:
    """The device of the first tensor in `b`, `None` if there is no tensor"""
    ...
def _floats(b: Any, dtype: Any) -> Any: ...
def to_float(b: Any) -> Any:
    """`b` with its floating point tensors as `float32`"""
    ...
def to_half(b: Any) -> Any:
    """`b` with its floating point tensors as `float16`"""
    ...
def to_np(b: Any) -> Any:
    """`b` with NumPy arrays in place of its tensors"""
    ...
def flatten_check(inp: Tensor, targ: Tensor) -> tuple[Tensor, Tensor]:
    """`inp` and `targ` as vectors of one length

    Args:
        inp: predictions
        targ: targets, as many
    """
    ...
class Inputs(dict[Any, Any]):
    """Inputs by name, for `model(**inputs)`"""
    targ_names: tuple[Any, ...]
    def with_targs(self, yb: tuple[Any, ...]) -> dict[Any, Any]:
        """The inputs, and the targets `yb` under the names that they had in the batch"""
        ...
_targ_names: tuple[Any, ...]
def _split_mapping(b: Any, n_inp: Any) -> tuple[Any, ...]: ...
def _bad_batch(b: Any, n_inp: Any) -> Any:
    """What is wrong with `b`"""
    ...
def split_batch(b: Any, n_inp: int|None = None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The inputs and the targets of a batch

    Args:
        b: a tuple or list, a tensor, or a mapping
        n_inp: how many elements go to the model; `None`: all but the last
    """
    ...
def shapes(b: Any) -> str:
    """The shapes and types in a nested batch, for messages"""
    ...
