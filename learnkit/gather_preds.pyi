# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Callbacks that keep the predictions of a validation phase: `GatherPredsCallback`, `FetchPredsCallback`"""
import torch
from collections.abc import Callable
from ._fastcore import L
from .callback import Callback
from pathlib import Path
from typing import Any

__all__ = ['GatherPredsCallback', 'FetchPredsCallback']
class GatherPredsCallback(Callback):
    """Keeps the predictions of a validation phase, with inputs, targets and losses as asked for, on the CPU"""
    inputs: Any
    preds: Any
    targets: Any
    decoded: Any
    losses: Any
    skip: bool
    turns: Any
    taken: tuple[Any, ...]|list[Any]
    with_input: bool
    with_preds: bool
    with_targs: bool
    with_loss: bool
    save_preds: str|Path|None
    save_targs: str|Path|None
    pickle_protocol: int
    mmap: str|Path|None
    concat_dim: int
    act: Callable[..., Any]|None
    decodes: Callable[..., Any]|None
    idxs: Any
    dtype: torch.dtype|None
    inp: Any
    def __init__(
        self,
        with_input: bool = False,
        with_loss: bool = False,
        save_preds: str|Path|None = None,
        save_targs: str|Path|None = None,
        with_preds: bool = True,
        with_targs: bool = True,
        concat_dim: int = 0,
        pickle_protocol: int = 2,
        act: Callable[..., Any]|None = None,
        decodes: Callable[..., Any]|None = None,
        idxs: Any = None,
        dtype: torch.dtype|None = None,
        mmap: str|Path|None = None,
    ) -> None:
        """Keeps the predictions of a validation phase, with inputs, targets and losses as asked for, on the CPU

        Args:
            with_input: keep the inputs too
            with_loss: keep the loss of each item; the loss function must not reduce
            save_preds: a folder for the predictions, a file a batch, named by its number
            save_targs: the same for targets
            with_preds: keep the predictions
            with_targs: keep the targets
            concat_dim: the dimension along which batches are joined
            pickle_protocol: for `save_preds` and `save_targs`
            act: activation: a batch of model outputs -> predictions; None: the outputs
            decodes: predictions -> answers, kept as `decoded`
            idxs: each item's index in the data set, as they come: results are in this order
            dtype: the dtype of floating-point predictions; None: unchanged
            mmap: a folder for memory-mapped files, for results larger than memory
        """
        ...
    def before_validate(self) -> None: ...
    def _begin(self, n: Any, to: Any = None, key: Any = None) -> None: ...
    def before_batch(self) -> None: ...
    def after_cancel_batch(self) -> None: ...
    def after_batch(self) -> None: ...
    def _losses(self, loss: Any, yb: Any) -> Any:
        """The loss of each item: the mean over its targets that count

        Raises:
            ValueError: `with_loss` asks for the loss of each item, but the batches have no target
            ValueError: the loss of each item is needed, but for a batch of … items the loss function returned …, though …
        """
        ...
    def _save(self, folder: Any, b: Any) -> None: ...
    def after_validate(self) -> None: ...
    def all_tensors(self) -> list[Any]:
        """Return `[inputs], preds, targets, [losses]`; those in brackets only if they were asked for"""
        ...
    def _begin_own(self, n: Any, to: Any, it: Any) -> Any:
        """Prepare for this process's part of `n` items, in one process at the positions `to`, when `it` is to begin

        Raises:
            ValueError: the processes have different data, so their results are not one file: write `learn.distributed = …
        """
        ...
    def _order(self) -> Any:
        """The position of each item in the order of the data set, as process 0 knows it"""
        ...
class FetchPredsCallback(Callback):
    """After each validation, `preds` holds the result of `learn.get_preds`"""
    remove_on_fetch: bool
    cbs: L
    ds_idx: int
    dl: Any
    with_input: bool
    with_decoded: bool
    reorder: bool
    preds: Any
    def __init__(
        self,
        ds_idx: int = 1,
        dl: Any = None,
        with_input: bool = False,
        with_decoded: bool = False,
        cbs: Any = None,
        reorder: bool = True,
    ) -> None:
        """After each validation, `preds` holds the result of `learn.get_preds`

        Args:
            ds_idx: which loader of `dls`
            dl: or this one
            with_input: the inputs too
            with_decoded: the decoded predictions too
            cbs: callbacks to do without meanwhile
            reorder: in the order of the data set
        """
        ...
    def after_validate(self) -> None: ...
