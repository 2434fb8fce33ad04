# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`RollBackOnNaN` goes back to the last good weights when the loss is NaN or infinite, with a lower learning rate"""
from ..callback import Callback
from ..control.every import Every
from typing import Any

__all__ = ['RollBackOnNaN']
class RollBackOnNaN(Callback):
    """Goes back to the last good weights when a training loss is NaN or infinite, and on with a lower learning rate"""
    name: str
    saver: Any
    good: Any
    flag: Any
    every: Every
    source: str
    factor: Any
    at_most: Any
    n: int
    scale: float
    written: list[Any]|None
    def __init__(self, every: Any = '100ba', factor: float = 0.5, at_most: int = 3, source: str = 'memory') -> None:
        """Goes back to the last good weights when a training loss is NaN or infinite, and on with a lower learning rate

        Args:
            every: how often to check the losses, and to keep a copy; text such as '500ba', see `Every`
            factor: the learning rate is multiplied by it each time
            at_most: how often to go back; then the fit ends, with good weights
            source: 'memory' for a copy there, or 'checkpoint' for the newest one whose weights are finite

        Raises:
            ValueError: `source` must be 'memory' or 'checkpoint'
            ValueError: `factor` must be a factor for the learning rate
            ValueError: `at_most` must be a whole number, 1 or more
        """
        ...
    def before_fit(self) -> None: ...
    def before_pred(self) -> None:
        """Lower the learning rate again if a schedule, which does not know of it, has set it since"""
        ...
    def after_loss(self) -> None: ...
    def after_train(self) -> None: ...
    def nonfinite_loss(self) -> None:
        """Handle the event, so that it is no error: `after_loss` and `after_train` go back to good weights"""
        ...
    def cleanup(self) -> None: ...
    def _keep(self) -> None: ...
    def _others(self) -> list[Any]:
        """The callbacks that go back too; not the loggers, as it did happen"""
        ...
    def _back(self) -> None:
        """Go back to good weights; ends the fit if there are none, or if it went back too often

        Raises:
            CancelFit
        """
        ...
    def _stop(self, why: Any) -> None: ...
    def _restore(self, good: Any) -> None: ...
    def _lower(self, by: Any) -> None: ...
    def _newest(self) -> Any:
        """The state in the newest checkpoint that can be read and has finite weights; None if there is none"""
        ...
