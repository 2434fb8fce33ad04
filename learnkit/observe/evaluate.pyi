# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Several validation sets, each with its own metrics and its own rhythm"""
from ..control.every_callback import EveryCallback
from ..history import History
from typing import Any

__all__ = ['Watched', 'Evaluator']
class Watched:
    """The latest value of a column of an `Evaluator`, as a function of the Learner: to be given to a `Monitor`"""
    evaluator: Any
    def __init__(self, evaluator: Any, column: str) -> None:
        """The latest value of a column of an `Evaluator`, as a function of the Learner: to be given to a `Monitor`

        Args:
            evaluator: the `Evaluator`
            column: the name of its column
        """
        ...
    @property
    def lower_better(self) -> bool|None:
        """Whether a lower value is better, if the metric says so itself"""
        ...
    def __call__(self, learn: Any) -> float|None:
        """Args:
            learn: the Learner; None where there was no evaluation in this epoch
        """
        ...
class Evaluator(EveryCallback):
    """Validates on a loader of its own, with its own metrics, whenever it is due; `history` has its rows"""
    saves: tuple[Any, ...]
    label: str
    dl: Any
    history: History
    group: Any
    asked: list[Any]
    metrics: Any
    when_better: Any
    def __init__(self, name: str, dl: Any, metrics: Any = None, every: Any = '1ep', when_better: Any = None) -> None:
        """Validates on a loader of its own, with its own metrics, whenever it is due; `history` has its rows

        Args:
            name: what it is called; its columns are `name_loss` and `name_metric`
            dl: its loader, any iterable of batches
            metrics: as for the Learner; None: the metrics of the Learner
            every: how often: text such as '500ba' or '30m', a number of epochs, or a function of the Learner
            when_better: instead of `every`: after each epoch in which this column, or `Monitor`, became better
        """
        ...
    @property
    def name(self) -> str:
        """By what it is called: `learn.evaluate_test`"""
        ...
    def measured(self) -> dict[Any, Any]:
        """Its metrics by the names of their columns; None for the loss"""
        ...
    @property
    def columns(self) -> dict[Any, Any]:
        """What a `Monitor` can watch: functions of the Learner by the names of the columns"""
        ...
    def __getitem__(self, k: str) -> Watched:
        """To be watched: `monitor=evaluator['accuracy']`, or by the whole name of the column"""
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def due(self, epoch: bool = False) -> bool:
        """Is it time?

        Args:
            epoch: is it the end of an epoch? Else that of a training batch
        """
        ...
    def _together(self, epoch: bool = False) -> None:
        """The first one asks all whether they are due"""
        ...
    def act(self) -> dict[Any, Any]:
        """Evaluate now: the loss and the metrics by name"""
        ...
