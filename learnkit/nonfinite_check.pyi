# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""End the fit when the training loss and the weights are NaN or infinite"""
from .callback import Callback
from typing import Any

__all__ = ['NonFiniteLoss', 'NonFiniteCheck']
class NonFiniteLoss(FloatingPointError):
    """The training loss is NaN or infinite, and so are weights"""
class NonFiniteCheck(Callback):
    """Ends the fit when the training loss and weights are NaN or infinite; warns if only the loss is"""
    on_nan: str
    warned: bool
    def __init__(self, on_nan: str = 'raise') -> None:
        """Ends the fit when the training loss and weights are NaN or infinite; warns if only the loss is

        Args:
            on_nan: when weights are NaN or infinite: 'raise' a `NonFiniteLoss`, or 'warn' and continue

        Raises:
            ValueError: `on_nan` must be 'raise' or 'warn'
        """
        ...
    def before_fit(self) -> None: ...
    def after_read_losses(self, losses: Any, start: Any) -> None: ...
    def _message(self, losses: Any, start: Any) -> str:
        """Say where it began: after the last finite loss; if it is over, at the first bad loss"""
        ...
    def _hint(self, losses: Any, start: Any) -> Any: ...
    def _position(self, i: Any) -> str: ...
def _last_finite(losses: Any) -> Any: ...
def _nan_buffer(model: Any) -> Any:
    """For the message: the first buffer that is NaN, such as the averages of a batch norm when only the step was skipped"""
    ...
