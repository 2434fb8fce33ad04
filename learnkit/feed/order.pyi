# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which batches an epoch has, and what is drawn at random for each item, as a function of a seed and the epoch alone"""
from collections.abc import Callable, Iterator, Sequence
from torch.utils.data import Dataset, IterableDataset
from typing import Any, Self

__all__ = ['Ordered']
def seed_for(*key: Any) -> int:
    """A seed of 63 bits for what `key` names; another for each other key"""
    ...
def seed_cpu(seed: int) -> None:
    """Seed the generators that data sets draw from: Python's, NumPy's, and PyTorch's on the CPU"""
    ...
def cpu_states() -> tuple[Any, ...]:
    """The states of the generators that `seed_cpu` seeds"""
    ...
def set_cpu_states(py: Any, th: Any, np: Any) -> None:
    """Put these generators into the states that `cpu_states` gave"""
    ...
def _plain(py: Any, th: Any, np: Any) -> tuple[Any, ...]: ...
def _from_plain(py: Any, th: Any, np: Any) -> tuple[Any, ...]: ...
class Stream:
    """Random numbers of its own: inside `with stream:` the generators go on where they were at the end of the last such block"""
    seed: int
    own: Any
    outer: Any
    def __init__(self, seed: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: Any) -> None: ...
class Inside:
    """Goes through `batches`, which are made with the random numbers of `stream`"""
    over: bool
    given: bool
    stream: Stream
    batches: Any
    skip: int
    again: bool
    it: Any
    def __init__(self, stream: Stream, batches: Any, skip: int = 0, again: bool = False) -> None:
        """Goes through `batches`, which are made with the random numbers of `stream`

        Args:
            stream: to draw from
            batches: any iterable
            skip: so many are made and not given
            again: if it has none, is it to be begun anew, once?
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def _next(self) -> Any: ...
class Seeded(Dataset[Any]):
    """The items of `ds` for keys `(seed, epoch, index)`; what is drawn for an item depends on its key alone"""
    ds: Any
    def __init__(self, ds: Any) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Any: ...
    @property
    def __getitems__(self) -> Any:
        """For data sets that make a batch at once; None for the others, as `torch.utils.data` expects"""
        ...
class Plan:
    """A sampler that says what was written down, each thing in the form that `keyed` gives it"""
    said: Sequence[Any]
    keyed: Callable[..., Any]
    def __init__(self, keyed: Callable[..., Any]) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
def reseed(o: Any, seed: int) -> None:
    """Seed the generators among the attributes of `o`: PyTorch's, Python's, NumPy's"""
    ...
def written_down(sampler: Any, seed: int, epoch: int) -> list[Any]:
    """All that `sampler` says in this epoch; the global generators are left as they were

    Args:
        sampler: of indices, or of batches of them
        seed: to draw with
        epoch: for samplers that have a `set_epoch`
    """
    ...
def is_stateful(o: Any) -> bool:
    """Does `o` know its place: has it `state_dict` and `load_state_dict`?"""
    ...
class Ending(IterableDataset[Any]):
    """The items of `ds`, and whether they are at their end: the last batch may have found out before it was given"""
    over: bool
    ds: Any
    def __init__(self, ds: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
_kept: Any
def _torchdata(dl: Any) -> Any: ...
def _counted(dl: Any) -> Any:
    """Can a `DataLoader` that counts stand in for `dl`?"""
    ...
class Ordered:
    """The batches of `dl`, in an order that depends on `seed` and the epoch alone, from number `start` on"""
    dl: Any
    seed: int
    epoch: int
    start: int
    plan: Plan|None
    saved: dict[Any, Any]|None
    inside: Any
    keeper: Any
    through: Any
    sent: Any
    draws: bool
    loader: Any
    def __init__(self, dl: Any, seed: int) -> None:
        """The batches of `dl`, in an order that depends on `seed` and the epoch alone, from number `start` on

        Args:
            dl: any iterable of batches
            seed: for shuffling and augmentation
        """
        ...
    def at(self, epoch: int, start: int = 0, saved: dict[Any, Any]|None = None) -> Self:
        """Go to this place

        Args:
            epoch: which epoch
            start: the number of the first batch
            saved: what `place` said there, if it said something
        """
        ...
    def __iter__(self) -> Iterator[Any]: ...
    def _planned(self, seed: Any) -> Any: ...
    @property
    def indexed(self) -> bool:
        """Is a place found by counting? If not, what comes before it is gone through again, or the data knows its place"""
        ...
    @property
    def swaps(self) -> bool:
        """Are the generators of this process swapped while it makes a batch?"""
        ...
    @property
    def said(self) -> Sequence[Any]|None:
        """The indices of each batch of the epoch from `start` on; None where they are not known"""
        ...
    def _key(self, i: Any) -> tuple[Any, ...]: ...
    def _keys(self, batch: Any) -> list[Any]: ...
    def __len__(self) -> int: ...
    def _find_keeper(self) -> None:
        """Who knows the place: the loader, or a data set in this process"""
        ...
    def _gone_through(self, seed: Any) -> Any: ...
    def _send(self, state: Any) -> None: ...
    def place(self, done: int) -> dict[Any, Any]|None:
        """What `at` needs to go on from here; None if it needs nothing, or goes through the data again

        Args:
            done: how many batches of this epoch are trained; 0: it is over
        """
        ...
