# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One name for each hyper-parameter, whatever the optimizer calls it, and a dict of them for each parameter group"""
from collections.abc import Iterable, Iterator, MutableMapping
from torch import Tensor
from torch.optim import Optimizer
from typing import Any

__all__ = ['hyper_places', 'Hypers', 'even_mults']
_short: dict[Any, Any]
def hyper_places(keys: tuple[Any, ...]) -> dict[Any, Any]:
    """Returns where the hyper-parameters are among `keys`

    Args:
        keys: The keys of a group of PyTorch's, or the parameters of an optimizer class

    Returns:
        Name -> key, and index if the key's value is a tuple
    """
    ...
def is_number(v: Any) -> bool:
    """Is `v` a number or a tensor with one element? A `bool` is neither

    Args:
        v: the value of a hyper-parameter
    """
    ...
def _number_places(pg: Any) -> dict[Any, Any]: ...
def _num(v: Any, what: str = 'A hyper-parameter') -> float:
    """Returns `v` as a plain Python number; raises TypeError if it is none

    Raises:
        TypeError: … is a number, not …: ….…
    """
    ...
def _find(pg: Any, name: Any) -> tuple[Any, ...]:
    """Returns key and index of the hyper-parameter `name` in the torch group `pg`; raises KeyError if there is none

    Raises:
        KeyError: This optimizer has no hyper-parameter '…', it has ….…
    """
    ...
def _read(pg: Any, name: Any) -> Any: ...
def _put(old: Any, v: Any) -> Any: ...
def _write(pgs: Any, name: Any, v: Any) -> None: ...
def _write_groups(opt: Any, pgs: Any, name: Any, v: Any) -> None: ...
def _start_momentum(opt: Any, pgs: Any) -> None:
    """Make the buffers that RMSprop would miss: it makes them at the first step only, if there is a momentum by then"""
    ...
def logical_groups(pgs: list[Any]) -> list[Any]:
    """Returns PyTorch's parameter groups as the user counts them

    Args:
        pgs: A torch optimizer's `param_groups`

    Returns:
        For each group as you made it: a list with that group, and its half without decay if it was split
    """
    ...
class Hypers(MutableMapping[Any, Any]):
    """The hyper-parameters of one parameter group, as a dict that reads and writes the torch optimizer"""
    opt: Optimizer
    i: int
    def __init__(self, opt: Optimizer, i: int = 0) -> None:
        """The hyper-parameters of one parameter group, as a dict that reads and writes the torch optimizer

        Args:
            opt: A torch optimizer
            i: Number of the group
        """
        ...
    @property
    def groups(self) -> list[Any]:
        """The parameter groups of the torch optimizer that make up this one"""
        ...
    def __getitem__(self, k: str) -> float|Tensor: ...
    def __setitem__(self, k: str, v: float|Tensor) -> None: ...
    def __delitem__(self, k: str) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
def even_mults(start: float, stop: float, n: int) -> list[Any]:
    """Returns `n` values from `start` to `stop` in equal ratios; raises ValueError unless both have the same sign

    Args:
        start: Value of the first group
        stop: Value of the last group
        n: Number of groups

    Returns:
        `n` numbers, each the same multiple of the one before

    Raises:
        ValueError: No ratio leads from … to …: both ends of a slice must be above zero.
    """
    ...
def spread(v: float|Tensor|slice|Iterable[Any], n: int) -> list[Any]:
    """Returns `v` as a list of `n` numbers, one for each group; raises ValueError if it has another length

    Args:
        v: One number for all groups, one for each, or a slice
        n: Number of groups

    Returns:
        Plain Python numbers

    Raises:
        ValueError: Write slice(first, last) or slice(last) for the groups' values, not ….
        TypeError: A hyper-parameter is a number, not …: ….…
        ValueError: … values for … parameter groups: give one number, or one for each group.
    """
    ...
def write_hyper(opt: Optimizer, name: str, value: float|Tensor|slice|Iterable[Any]) -> None:
    """Sets the hyper-parameter `name` of every group of a torch optimizer

    Args:
        opt: A torch optimizer
        name: `lr`, `mom`, `wd`, ...
        value: One number for all groups, one for each, or a slice
    """
    ...
def check_rate(what: str, v: Any) -> None:
    """Raises TypeError if `v` has what is no number in it, ValueError if a number is negative, infinite or NaN

    Args:
        what: What it is, for the message: 'the learning rate `lr`'
        v: One number for all groups, one for each, or a slice; None: not given

    Raises:
        TypeError: … is a number, not …: ….…
        ValueError: … must be 0 or more
    """
    ...
def check_moms(moms: Any) -> None:
    """Raises ValueError unless `moms` are what `fit_one_cycle` needs

    Args:
        moms: Should be three momentums, or None

    Raises:
        ValueError: moms are three numbers from 0 to less than 1: at the start, at the highest learning rate and at the …
    """
    ...
