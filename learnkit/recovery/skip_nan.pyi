# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`SkipNaN` leaves out training batches whose loss or gradients are NaN or infinite"""
from ..callback import Callback
from ..snapshot import Snapshot
from typing import Any

__all__ = ['SkipNaN']
class SkipNaN(Callback):
    """Leaves out a training batch whose loss or gradients are NaN or infinite"""
    name: str
    snapshot: Snapshot|None
    buffers: tuple[Any, ...]|list[Any]
    last: Any
    at_most: Any
    wait: bool
    n: Any
    row: Any
    together: bool
    def __init__(self, at_most: int|None = 10, wait: bool = True) -> None:
        """Leaves out a training batch whose loss or gradients are NaN or infinite

        Args:
            at_most: this number of such batches in a row ends the fit; None: go on for ever
            wait: read the values, which waits for the device? False: the device sets gradients to zero

        Raises:
            ValueError: `at_most` must be a number of batches, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_batch(self) -> None: ...
    def after_loss(self) -> None: ...
    def before_step(self) -> None: ...
    def _zero(self, grads: Any, ok: Any) -> None: ...
    def _skip(self, what: Any, cancel: Any) -> None: ...
    def nonfinite_loss(self) -> None:
        """Handle the event, so that it is no error: such batches are left out in `after_loss` and `before_step`"""
        ...
    def cleanup(self) -> None: ...
