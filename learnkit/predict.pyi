# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`get_preds` for a data set, `predict` for a single item"""
from typing import Any

def _activation(loss_func: Any) -> Any:
    """The loss function's `activation`, applied to outputs that are one tensor; None if it has none"""
    ...
def _decoded_item(decode: Any, inp: Any, decoded: Any) -> tuple[Any, ...]:
    """The input and the label of a batch's only item, as the data's own `decode` gives them"""
    ...
def _only(o: Any) -> Any:
    """The only item of a batch of one, in the structure of the batch"""
    ...
def _label(dec: Any, vocab: Any) -> Any:
    """What `vocab` calls the decoded prediction `dec`: a class, one for each token, several, or `dec` without a vocab"""
    ...
def _own_collate(dls: Any) -> Any:
    """The function with which the loaders of `dls` make a batch of items, if it is not PyTorch's"""
    ...
