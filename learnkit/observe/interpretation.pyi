# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which items the model gets most wrong: predictions, targets and losses, item by item"""
from collections.abc import Callable, Mapping
from ..history import History
from ..learner import Learner
from torch import Tensor
from typing import Any

__all__ = ['vocab_of', 'Interpretation']
def _some_items(dl: Any) -> Any:
    """A function from the numbers of items to a loader of them; None if `dl` does not read its data set from end to end"""
    ...
def vocab_of(dls: Any, vocab: list[Any]|None = None) -> list[Any]|None:
    """Return the names of the classes, None if there are none; the last ones if `vocab` has several lists

    Args:
        dls: may have a `vocab`
        vocab: taken instead
    """
    ...
class Interpretation:
    """Interpret a model: predictions, targets and the loss of each item"""
    read: Callable[..., Any]|None
    """from the numbers of items to their inputs, if those were not kept"""
    preds: Any
    targs: Any
    decoded: Any
    losses: Tensor
    inputs: Any
    vocab: list[Any]|None
    ignore_index: int
    def __init__(
        self,
        preds: Any,
        targs: Any,
        decoded: Any,
        losses: Tensor,
        inputs: Any = None,
        vocab: list[Any]|None = None,
        ignore_index: int = -100,
    ) -> None:
        """Interpret a model: predictions, targets and the loss of each item

        Args:
            preds: predictions, after the activation
            targs: targets
            decoded: decoded predictions, such as the most likely class
            losses: the loss of each item
            inputs: inputs; None: not kept
            vocab: names of the classes
            ignore_index: class number that does not count, such as that of padding
        """
        ...
    @classmethod
    def from_learner(
        cls,
        learn: Learner,
        ds_idx: int = 1,
        dl: Any = None,
        act: Callable[..., Any]|None = None,
        with_input: bool = False,
        vocab: list[Any]|None = None,
    ) -> Interpretation:
        """Predict a data set with `learn`, and interpret the results

        Args:
            learn: has the model, the loss function and the data
            ds_idx: number of the loader in `learn.dls`: 1 is the validation set
            dl: the loader, any iterable of batches; None: the one of `ds_idx`
            act: from the model's outputs to predictions; None: the loss function's `activation`
            with_input: keep the inputs; False: read those of the items looked at again, if possible
            vocab: names of the classes; None: those of `learn.dls`
        """
        ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __getitem__(self, idxs: int|slice|list[Any]|Tensor) -> tuple[Any, ...]:
        """Inputs (None if there are none), predictions, targets, decoded predictions and losses of the items `idxs`

        Args:
            idxs: numbers of the items, or a mask; `[:]` is all of them
        """
        ...
    def top_losses(self, k: int|None = None, largest: bool = True) -> tuple[Tensor, Tensor]:
        """Returns the `k` largest (or smallest) losses and the numbers of their items

        Args:
            k: how many; None: all
            largest: the largest losses; False: the smallest
        """
        ...
    def name(self, v: Any) -> str:
        """Returns the name of a class, or the value as text, for a table

        Args:
            v: a target or a decoded prediction of one item
        """
        ...
    def rows(self, idxs: int|list[Any]|Tensor) -> History:
        """Returns a table of items: number, loss, target, prediction, its probability or score, and inputs if kept

        Args:
            idxs: numbers of the items
        """
        ...
    def plot_top_losses(
        self,
        k: int|list[Any],
        largest: bool = True,
        ncols: int = 5,
        figsize: tuple[Any, ...]|None = None,
        stats: tuple[Any, ...]|None = None,
    ) -> Any:
        """Plot the items with the largest losses; returns matplotlib axes, or a table if the inputs are not images

        Args:
            k: how many items, or a list or range of their ranks
            largest: the largest losses first; False: the smallest
            ncols: images in a row
            figsize: width and height in inches; None: by the number of images
            stats: mean and standard deviation by which images were normalized

        Raises:
            ValueError: the inputs were not kept, and this loader cannot read them again by number: pass `with_input=True` …
        """
        ...
def _item(b: Any, i: Any) -> Any: ...
def value_text(v: Any, vocab: list[Any]|None = None) -> str:
    """Return a value for a title or a table: the name of a class, the names of several, or the first numbers

    Args:
        v: an input, a target or a decoded prediction of one item
        vocab: names of the classes
    """
    ...
def inputs_by_name(inputs: Any) -> Mapping[Any, Any]:
    """Return the inputs as a mapping: `input`, or `input 0` and so on if there are several

    Args:
        inputs: of a batch; None: not kept
    """
    ...
def _scores(preds: Any, decoded: Any) -> tuple[Any, ...]|None:
    """`(column name, score of each decoded class)`; None if the items have not one class each"""
    ...
