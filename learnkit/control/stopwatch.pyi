# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A timer that does not run during validation"""
from ..callback import Callback
from typing import Any

__all__ = ['Stopwatch', 'StopwatchCallback']
class Stopwatch:
    """Adds up the seconds between `start` and `stop`"""
    total: Any
    since: Any
    def __init__(self) -> None: ...
    def start(self) -> None:
        """Run, if it does not run yet"""
        ...
    def stop(self) -> bool:
        """Pause; returns whether it ran"""
        ...
    @property
    def seconds(self) -> float:
        """The seconds so far"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the seconds so far"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Set the seconds to those of `state`, and pause

        Args:
            state: what `state_dict` returned
        """
        ...
class StopwatchCallback(Callback):
    """Has a `watch` that measures the seconds of training, without validation; a base class"""
    watch: Stopwatch
    """the subclass makes it"""
    ran: Any
    def hears(self, name: str) -> bool:
        """Whether event `name` reaches this callback: validations do in every mode

        Args:
            name: the event
        """
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def after_validate(self) -> None: ...
    def after_train(self) -> None: ...
    after_cancel_epoch = after_train
