# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Tensors of which each process holds a part: the whole of them, and the part of a process of a whole one"""
from torch import Tensor, nn
from typing import Any

def is_sharded(t: Any) -> bool:
    """Returns whether `t` is a `DTensor`: a tensor that is laid out over several processes

    Args:
        t: a tensor, or anything else
    """
    ...
def whole(t: Any) -> Tensor:
    """Returns `t` as a plain tensor, put together from the parts of all processes; all must call it if it is sharded

    Args:
        t: a tensor of any kind
    """
    ...
def local_part(t: Any) -> Tensor:
    """Returns the part of `t` that this process holds, in the same memory and without its gradient; a plain `t` itself

    Args:
        t: a tensor of any kind
    """
    ...
def lay_out(t: Any, own: Any) -> Tensor:
    """Returns `t` laid out as `own` is: over the same processes in the same way, or whole

    Args:
        t: a tensor, whole or sharded
        own: one that says how
    """
    ...
def lay_out_state(state: Any, model: nn.Module) -> dict[Any, Any]:
    """Returns `state` with each tensor laid out as the model's tensor of that name is

    Args:
        state: weights by name in a dictionary, as from a file
        model: the model that is to load them
    """
    ...
def gathered(t: Tensor, copy: bool = False) -> Tensor|None:
    """Returns the whole of `t` on the CPU in process 0, None in the others; all must call it

    Args:
        t: a sharded tensor
        copy: never share memory with `t`, as with a group of one process?
    """
    ...
def own_part(t: Tensor, copy: bool = False) -> Tensor:
    """Returns `t` without its gradient, still sharded; with `copy` the part of this process is a copy on the CPU

    Args:
        t: a sharded tensor
        copy: copy its values, so that training can continue and change them?
    """
    ...
def own_class(m: nn.Module) -> type[Any]:
    """Returns the class of a module, as it was before `fully_shard` changed it

    Args:
        m: a module, sharded or not
    """
    ...
