# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`Predictor` keeps a run open, so that each item costs little more than the model; threads take turns"""
from ._fastcore import L
from .learner import Learner
from typing import Any, Self

__all__ = ['Predictor']
def _leave(learn: Any, run: Any, e: Any = None) -> Any:
    """End the open `run`, after the exception `e` if there was one"""
    ...
def _forget(cb: Any) -> None:
    """Args:
        cb: else the prediction of the item before would be taken for it
    """
    ...
class Predictor:
    """Predicts one item after another in a run that stays open; threads take turns"""
    run: Any
    n: int
    learn: Learner
    cbs: L
    model: Any
    training: Any
    heard: list[Any]
    act: Any
    decodes: Any
    def __init__(self, learn: Learner, cbs: Any = None) -> None:
        """Predicts one item after another in a run that stays open; threads take turns

        Args:
            learn: its model, callbacks and data predict; it cannot be trained until `close`
            cbs: callbacks for this run only

        Raises:
            TypeError: a `Predictor` is made from a Learner, such as `load_learner(file, model)`
        """
        ...
    def __call__(self, item: Any, with_input: bool = False) -> tuple[Any, ...]:
        """Predict one item: returns what `learn.predict` does. Raises RuntimeError if the Learner is in another run.

        Args:
            item: one input as the data set returns it, without target; a tuple for several inputs
            with_input: return the input too

        Raises:
            RuntimeError: a `Predictor` needs a run of its own, but a `…` is running already…: call `learn.predict` in there
        """
        ...
    def close(self) -> None:
        """End the run, if one is open; the next item opens another"""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: Any) -> None: ...
    def _is_ready(self) -> Any:
        """Is a run open, and the Learner as it was when it began?"""
        ...
    def _open(self) -> None: ...
    def _end(self, e: Any = None, grad: Any = None) -> None: ...
    def _predict(self, b: Any) -> Any:
        """The prediction for the batch `b`, as it comes and decoded, on the CPU"""
        ...
def _own(o: Any) -> Any:
    """A copy of what the model returned, which it may overwrite when it is called again"""
    ...
