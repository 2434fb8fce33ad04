# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""How fast it is, how long it will take, what it uses: numbers of a run, kept in rows and told to whoever listens"""
import torch
from collections.abc import Callable
from ..control.clock import Stopwatch, Timed
from ..control.every import EveryCallback
from ..recorder import History
from typing import Any

__all__ = ['Observer', 'LossMonitor', 'LRMonitor', 'SpeedMonitor', 'RuntimeEstimator']
class Observer(EveryCallback):
    """Measures every so often: each dictionary that `measure` returns is a row of `history`, and is announced by `log_metrics`"""
    order: int
    saves: tuple[Any, ...]
    bulk: int
    rows: History
    pending: list[Any]
    def __init__(self, every: Any = '10ba') -> None:
        """Measures every so often: each dictionary that `measure` returns is a row of `history`, and is announced by `log_metrics`

        Args:
            every: how often: text such as '10ba' or '1ep', a `Time`, a number of epochs, or a function of the Learner
        """
        ...
    def measure(self) -> dict[Any, Any]|None:
        """The numbers by name, as floats or as tensors of one number; None if there are none yet"""
        ...
    def before_fit(self) -> None: ...
    def act(self) -> None: ...
    def after_epoch(self) -> None: ...
    def cleanup(self) -> None: ...
    after_fit = cleanup
    after_exception = cleanup
    before_save_checkpoint = cleanup
    def log(self, metrics: dict[Any, Any]|None, step: int|None = None) -> None:
        """Take in a row

        Args:
            metrics: numbers by name; nothing is logged if there are none
            step: after which training batch they were taken; None: the last
        """
        ...
    def read(self) -> None:
        """Read what waits on the device, and announce it"""
        ...
    @property
    def history(self) -> History:
        """All rows"""
        ...
def stacked(values: list[Any]) -> torch.Tensor:
    """One tensor of them all, on the first one's device: a model may be on several

    Args:
        values: tensors of one number
    """
    ...
class LossMonitor(Observer):
    """The loss of the training batch, as it is, not smoothed"""
    def measure(self) -> dict[Any, Any]:
        """Its loss, on its device"""
        ...
class LRMonitor(Observer):
    """The learning rate of each parameter group, and its momentum if it has one"""
    def measure(self) -> dict[Any, Any]:
        """`lr` and `mom`; of several groups `lr/0`, `lr/1`, …"""
        ...
class SpeedMonitor(Timed, Observer):
    """Batches, samples, tokens and operations a second (Composer's `SpeedMonitor`)"""
    order: Any
    saves: tuple[Any, ...]
    watch: Stopwatch
    window: int
    flops: float|Callable[..., Any]|None
    peak_flops: float|None
    marks: Any
    has_tokens: bool
    def __init__(
        self,
        every: Any = '10ba',
        window: int = 100,
        flops: float|Callable[..., Any]|None = None,
        peak_flops: float|None = None,
    ) -> None:
        """Batches, samples, tokens and operations a second (Composer's `SpeedMonitor`)

        Args:
            every: how often; see `Observer`
            window: over how many batches
            flops: floating point operations of a training batch, forward and backward, or a function of the batch
            peak_flops: what all devices together could do in a second, for `mfu`
        """
        ...
    def _reset(self) -> None: ...
    def before_fit(self) -> None: ...
    def before_train(self) -> None: ...
    def after_batch(self) -> None: ...
    def _counts(self) -> tuple[Any, ...]: ...
    def _tokens(self, batch: Any) -> Any: ...
    def measure(self) -> dict[Any, Any]|None:
        """The means over the window"""
        ...
class RuntimeEstimator(Timed, Observer):
    """How many seconds the run will still take: `remaining` (after Composer's `RuntimeEstimator`)"""
    order: Any
    saves: Any
    skip: int
    watch: Stopwatch
    first: tuple[Any, ...]|None
    seen: int
    epochs: list[Any]
    within: float
    began: Any
    def __init__(self, every: Any = '10ba', skip: int = 1) -> None:
        """How many seconds the run will still take: `remaining` (after Composer's `RuntimeEstimator`)

        Args:
            every: how often; see `Observer`
            skip: leave out so many batches at the beginning
        """
        ...
    def _reset(self) -> None: ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def before_train(self) -> None: ...
    def _begin(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    @property
    def remaining(self) -> float|None:
        """Seconds until the end of the run; None while it is too early to tell, or if the loader has no length"""
        ...
    def measure(self) -> dict[Any, Any]|None:
        """The seconds that remain"""
        ...
