# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Several validation sets, each with its own metrics and its own schedule"""
from ..control.every_callback import EveryCallback
from ..history import History
from ..learner import Learner
from typing import Any

__all__ = ['EvaluatorColumn', 'Evaluator']
class EvaluatorColumn:
    """The latest value of a column of an `Evaluator`, as a function of the Learner that a `Monitor` takes"""
    evaluator: Any
    def __init__(self, evaluator: Any, column: str) -> None:
        """The latest value of a column of an `Evaluator`, as a function of the Learner that a `Monitor` takes

        Args:
            evaluator: the `Evaluator`
            column: the name of its column
        """
        ...
    @property
    def lower_better(self) -> bool|None:
        """Whether a lower value is better, if the metric says so itself; None if it does not"""
        ...
    def __call__(self, learn: Learner) -> float|None:
        """Returns the value at the end of this epoch; None if there was no evaluation then

        Args:
            learn: the Learner, in a fit
        """
        ...
class Evaluator(EveryCallback):
    """Evaluates a loader of its own, with its own metrics, on its own schedule; `history` has the results"""
    at_end: int|None
    """the epoch at whose end it evaluated last"""
    label: str
    dl: Any
    history: History
    metrics: Any
    when_better: Any
    evaluators: tuple[Any, ...]|list[Any]
    requested: list[Any]
    def __init__(self, name: str, dl: Any, metrics: Any = None, every: Any = '1ep', when_better: Any = None) -> None:
        """Evaluates a loader of its own, with its own metrics, on its own schedule; `history` has the results

        Args:
            name: the name, one word; its columns are `name_loss` and `name_metric`
            dl: the loader, any iterable of batches
            metrics: metrics, as for the Learner; None: the metrics of the Learner
            every: how often, as for `Every`: text such as '500ba' or '30m', a number of epochs, …
            when_better: instead of `every`: after each row in which this column, or `Monitor`, improved

        Raises:
            ValueError: the name of an Evaluator must be one word, such as 'test'
            ValueError: pass `every` or `when_better`, not both (every=…)
            ValueError: an Evaluator that is never due does nothing: to evaluate once, pass the loader to …
        """
        ...
    def column_metrics(self) -> dict[Any, Any]:
        """Returns its metrics by the names of their columns; None for the loss"""
        ...
    @property
    def extra_columns(self) -> dict[str, EvaluatorColumn]:
        """Its columns by name, as functions of the Learner that a `Monitor` can watch"""
        ...
    def __getitem__(self, k: str) -> EvaluatorColumn:
        """Returns a column to monitor: `monitor=evaluator['accuracy']`

        Args:
            k: the name of a metric, or of its column
        """
        ...
    def before_fit(self) -> None: ...
    def _check_columns(self) -> None:
        """Raise ValueError for a column that another callback has too, or one that is monitored and does not exist

        Raises:
            ValueError: there would be two columns …: give the Evaluator … another name
            ValueError: the Evaluator … has no column … to monitor: …
        """
        ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def due(self, epoch: bool = False) -> bool:
        """Is it time to evaluate?

        Args:
            epoch: asked at the end of an epoch; False: at the end of a training batch
        """
        ...
    def _evaluate_due(self, epoch: bool = False) -> None:
        """The first Evaluator evaluates all that are due, between two events"""
        ...
    def _evaluate_these(self, due: Any, epoch: bool = False) -> None: ...
    def act(self, epoch: bool = False) -> dict[Any, Any]:
        """Evaluate now, and add a row to `history`; returns the loss and the metrics by name

        Args:
            epoch: is it the end of an epoch?
        """
        ...
