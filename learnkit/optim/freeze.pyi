# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A fraction of an epoch, a budget, and batch norms that stand still"""
from ..callback import Callback
from ..control.every import EveryCallback
from torch import nn
from typing import Any

__all__ = ['bn_types', 'ShortEpochCallback', 'StopAfter', 'set_bn_eval', 'BnFreeze']
class ShortEpochCallback(Callback):
    """Ends each phase after the fraction `pct` of its batches (fastai's name)"""
    modes: tuple[Any, ...]
    pct: float
    short_valid: bool
    n: Any
    def __init__(self, pct: float = 0.01, short_valid: bool = True) -> None:
        """Ends each phase after the fraction `pct` of its batches (fastai's name)

        Args:
            pct: how much of an epoch; at least one batch
            short_valid: shorten the validation too?
        """
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_batch(self) -> None: ...
    def _n_batches(self) -> Any: ...
class StopAfter(EveryCallback):
    """Ends the fit when so much is done; the epoch is validated and recorded"""
    def __init__(self, much: Any) -> None:
        """Ends the fit when so much is done; the epoch is validated and recorded

        Args:
            much: how much: 500 training batches, or text such as '30m', '1e6sp', '3ep', or a `Time`
        """
        ...
    def act(self) -> None: ...
bn_types: tuple[Any, ...]
def set_bn_eval(m: nn.Module, use_eval: bool = True) -> None:
    """Set the batch norms in `m` whose weights are all frozen to evaluation mode

    Args:
        m: a model
        use_eval: evaluation mode, or back to training mode?
    """
    ...
class BnFreeze(Callback):
    """Keeps the statistics of frozen batch norms as they are (fastai's name)"""
    modes: tuple[Any, ...]
    def before_train(self) -> None: ...
