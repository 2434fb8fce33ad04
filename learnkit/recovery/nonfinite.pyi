# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A loss that is not a number, a batch that does not fit into memory: what to do instead of losing the run"""
import torch
from collections.abc import Callable
from ..callback import Callback
from ..control.every import Every
from ..optim.micro_batch import MicroBatch
from typing import Any

__all__ = ['all_finite', 'SkipNaN', 'RollBackOnNaN', 'ReplayOnOOM']
class Before:
    """The buffers of a model, such as the averages of batch norms, and the random numbers, as they are now"""
    buffers: list[Any]
    rng: Any
    def __init__(self, model: torch.nn.Module) -> None: ...
    def put_back(self) -> None:
        """As it was"""
        ...
def all_finite(ts: list[Any]) -> torch.Tensor:
    """Is every element finite? A tensor on the device; nobody waits for it.

    Args:
        ts: tensors, on one device
    """
    ...
class SkipNaN(Callback):
    """Leaves out a training batch whose loss or gradients are NaN or infinite"""
    name: str
    at_most: int|None
    wait: bool
    n: Any
    row: Any
    was: Before|None
    last: Any
    ok: Any
    def __init__(self, at_most: int|None = 10, wait: bool = True) -> None:
        """Leaves out a training batch whose loss or gradients are NaN or infinite

        Args:
            at_most: so many in a row end the fit, since then it is not the batch that is broken; None: never
            wait: look, and wait for the device? False: leave it to the device, with gradients of zero
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def before_step(self) -> None: ...
    def _zero(self, grads: Any, ok: Any) -> None: ...
    def _skip(self, what: Any, cancel: Any) -> None: ...
    def nonfinite_loss(self) -> None:
        """Nothing to do: such batches are left out in `after_loss` and `before_step`"""
        ...
    def cleanup(self) -> None: ...
class RollBackOnNaN(Callback):
    """Goes back to the last good weights when a training loss is NaN or infinite, and on with a lower learning rate"""
    name: str
    every: Every
    factor: float
    at_most: int
    source: str
    n: int
    scale: float
    good: Any
    sum: Any
    written: list[Any]|None
    saver: Any
    def __init__(self, every: Any = '100ba', factor: float = 0.5, at_most: int = 3, source: str = 'memory') -> None:
        """Goes back to the last good weights when a training loss is NaN or infinite, and on with a lower learning rate

        Args:
            every: how often to look, and to keep a copy; text such as '500ba', see `Every`
            factor: the learning rate is multiplied by it each time
            at_most: how often to go back; then the fit ends, with good weights
            source: where good weights are: a copy in 'memory', or the newest 'checkpoint' of which all weights are finite
        """
        ...
    def before_fit(self) -> None: ...
    def before_pred(self) -> None:
        """A schedule has set the learning rate, maybe, and knows nothing of what happened: is it not what was written here?"""
        ...
    def after_loss(self) -> None: ...
    def after_train(self) -> None: ...
    def nonfinite_loss(self) -> None:
        """Nothing to do: `after_loss` and `after_train` go back to good weights"""
        ...
    def cleanup(self) -> None: ...
    def _keep(self) -> None: ...
    def _goes_back(self, cb: Any) -> Any: ...
    def _back(self) -> None: ...
    def _lower(self, by: Any) -> None: ...
    def _newest(self) -> Any:
        """The newest checkpoint that is whole and has finite weights; what is not trained may be infinite, as a mask is, but not NaN"""
        ...
class ReplayOnOOM(MicroBatch):
    """Does a training batch again in smaller parts when there is no memory for it"""
    name: str
    attempt: int
    stepping: bool
    was: Before|None
    start: tuple[Any, ...]
    grads: list[Any]
    counts: list[Any]
    def __init__(self, size: int|None = None, split: Callable[..., Any]|None = None) -> None:
        """Does a training batch again in smaller parts when there is no memory for it

        Args:
            size: items a part to begin with; None: the whole batch
            split: how to take a batch apart, as for `MicroBatch`
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def after_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def cleanup(self) -> None: ...
    def wrap_batch(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does a training batch again, in smaller parts, until it fits into memory

        Args:
            do: does one batch
        """
        ...
    def _until_it_fits(self, do: Any) -> Any: ...
    def _begin(self) -> None: ...
    def _try(self, do: Any) -> bool:
        """Run the batch; False if it did not fit"""
        ...
    def _halve(self, e: Any) -> None: ...
    def _rewind(self) -> None:
        """Be where the batch began, with as much memory as there is"""
        ...
