# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Convert nested state to tensors, numbers, strings and containers, which `torch.load(weights_only=True)` can read"""
from collections.abc import Callable
from typing import Any

def to_serializable(o: Any, at: str = '', copy: bool = False, sharded: Callable[..., Any]|None = None) -> Any:
    """Return `o` as tensors, numbers, strings, lists, tuples and dicts; raises TypeError for anything else

    Args:
        o: nested containers of tensors, numbers and strings
        at: the position of `o`, for the message of an error
        copy: copy tensors to the CPU, so that training can continue and change them
        sharded: what becomes of a sharded tensor: `gathered`, `own_part`; None: it is refused

    Raises:
        TypeError: `…` is a ……, which a checkpoint cannot hold: replace it by a plain tensor (a `DTensor` has …
        TypeError: `…` is …, which `torch.load` cannot read
        TypeError: `…` is of type …, which a checkpoint cannot hold: use tensors, numbers, strings, and lists or dicts …
    """
    ...
def are_small(o: list[Any]|tuple[Any, ...]) -> bool:
    """Are all of `o` whole numbers of at most 2000 bits? A state of random number generators has 625, twice

    Args:
        o: of anything
    """
    ...
def _plain_tensor(t: Any, at: Any, copy: Any) -> Any:
    """A tensor of no subclass, which does not share a larger storage: that would be written as a whole

    Raises:
        TypeError: `…` is a ……, which a checkpoint cannot hold: replace it by a plain tensor (a `DTensor` has …
    """
    ...
def with_metadata(weights: Any, metadata: Any) -> Any:
    """Returns `weights` with `metadata` attached, as `state_dict` does

    Args:
        weights: a dict
        metadata: what modules find in it: which version of them wrote the weights; None: nothing
    """
    ...
def _check_readable(o: Any, at: Any) -> None: ...
