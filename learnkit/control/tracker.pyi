# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Keep the best, stop in time, slow down on a plateau"""
from collections.abc import Callable
from ..callback import Callback
from .every import Every
from .monitor import Monitor
from pathlib import Path
from typing import Any

__all__ = ['TerminateOnNaNCallback', 'TrackerCallback', 'OnBetter', 'EarlyStoppingCallback', 'ThresholdStopper',
           'SaveModelCallback', 'ReduceLROnPlateau']
class TerminateOnNaNCallback(Callback):
    """Ends the fit when a loss is NaN or infinite"""
    order: int
    modes: tuple[Any, ...]
    saves: tuple[Any, ...]
    answers_nan: bool
    every: Every
    sum: Any
    def __init__(self, every: Any = '100ba') -> None:
        """Ends the fit when a loss is NaN or infinite

        Args:
            every: how often to look on an accelerator, where that means to wait: text such as '500ba'
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_train(self) -> None: ...
    after_validate = after_train
    def _waits(self, loss: Any) -> Any: ...
    def _look(self) -> None: ...
    def cleanup(self) -> None: ...
class TrackerCallback(Callback):
    """Keeps track of the best value of `monitor`"""
    order: int
    modes: tuple[Any, ...]
    remove_on_fetch: bool
    saves: tuple[Any, ...]
    loaded: bool
    new_best: Any
    watch: Monitor
    monitor: str|Callable[..., Any]|None
    reset_on_fit: bool
    def __init__(
        self,
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Keeps track of the best value of `monitor`

        Args:
            monitor: a column of the Recorder, a function of the Learner, or None: valid_loss, else train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            min_delta: by more than this must a value be better to count
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, to 'skip', or a reason to 'raise'
        """
        ...
    @property
    def best(self) -> float|None:
        """The best value so far; infinitely bad when there is none yet"""
        ...
    def before_fit(self) -> None: ...
    def reset(self) -> None:
        """A fit begins that doesn't go on from a saved state"""
        ...
    def after_epoch(self) -> None:
        """Compare the epoch's value with the best: `new_best` is True, False, or None if there was none"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Put back what `state_dict` gave; the fit that follows goes on from there"""
        ...
    def cleanup(self) -> None: ...
def _positive(name: str, value: int) -> int:
    """`value`, if it is a whole number of epochs to wait"""
    ...
class OnBetter(TrackerCallback):
    """Calls `f(learn)` after each epoch that is the best so far"""
    order: Any
    f: Callable[..., Any]
    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Calls `f(learn)` after each epoch that is the best so far

        Args:
            f: function of the Learner
            kwargs: as for `TrackerCallback`
        """
        ...
    def after_epoch(self) -> None: ...
class EarlyStoppingCallback(TrackerCallback):
    """Ends the fit after `patience` epochs without improvement"""
    order: Any
    saves: tuple[Any, ...]
    patience: Any
    wait: Any
    def __init__(
        self,
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        patience: int = 1,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Ends the fit after `patience` epochs without improvement

        Args:
            monitor: a column of the Recorder, a function of the Learner, or None: valid_loss, else train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            min_delta: by more than this must a value be better to count
            patience: epochs without improvement after which it stops
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, to 'skip', or a reason to 'raise'
        """
        ...
    def reset(self) -> None: ...
    def after_epoch(self) -> None: ...
class ThresholdStopper(Callback):
    """Ends the fit when the monitored value is as good as `threshold`"""
    order: Any
    modes: tuple[Any, ...]
    run_valid: bool
    saves: tuple[Any, ...]
    threshold: float
    watch: Monitor
    every: Every
    def __init__(
        self,
        threshold: float,
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        every: Any = '1ep',
    ) -> None:
        """Ends the fit when the monitored value is as good as `threshold`

        Args:
            threshold: stop when the value is at most (comp='min') or at least ('max') this
            monitor: a column of the Recorder, a function of the Learner, or None: valid_loss, else train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            every: how often to look; more often than every epoch only for a function
        """
        ...
    def before_fit(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def _look(self) -> None: ...
class SaveModelCallback(TrackerCallback):
    """Saves the model when it's the best so far, and loads the best at the end of the fit; or saves it every so often"""
    order: Any
    run_valid: bool
    saves: tuple[Any, ...]
    every: Every
    saved: str|None
    fname: str
    every_epoch: int|bool
    at_end: bool
    with_opt: bool
    def __init__(
        self,
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        fname: str = 'model',
        every_epoch: int|bool = False,
        at_end: bool = False,
        with_opt: bool = False,
        reset_on_fit: bool = True,
        every: Any = None,
        nan: str = 'worse',
    ) -> None:
        """Saves the model when it's the best so far, and loads the best at the end of the fit; or saves it every so often

        Args:
            monitor: a column of the Recorder, a function of the Learner, or None: valid_loss, else train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            min_delta: by more than this must a value be better to count
            fname: name of the file, in `learn.path/learn.model_dir`
            every_epoch: save every n-th epoch, from the first on, however good it is
            at_end: at the end save the model as it is then, instead of loading the best
            with_opt: save and load the optimizer's state too?
            reset_on_fit: forget the best value when a fit begins?
            every: save every so often, however good it is: text such as '500ba' or '30m'
            nan: a NaN is 'worse' than everything, to 'skip', or a reason to 'raise'
        """
        ...
    @property
    def last_saved_path(self) -> Path|None:
        """The file written last, by this run"""
        ...
    def before_fit(self) -> None: ...
    def reset(self) -> None: ...
    def _save(self, name: Any) -> None: ...
    def _save_now(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_fit(self) -> None: ...
    def _end(self) -> None: ...
    def cleanup(self) -> None: ...
class ReduceLROnPlateau(TrackerCallback):
    """Divides the learning rate by `factor` after `patience` epochs without improvement"""
    order: Any
    saves: tuple[Any, ...]
    patience: Any
    factor: float
    min_lr: float
    wait: Any
    lrs: Any
    def __init__(
        self,
        monitor: str|Callable[..., Any]|None = 'valid_loss',
        comp: str|Callable[..., Any]|None = None,
        min_delta: float = 0.0,
        patience: int = 1,
        factor: float = 10.0,
        min_lr: float = 0,
        reset_on_fit: bool = True,
        nan: str = 'worse',
    ) -> None:
        """Divides the learning rate by `factor` after `patience` epochs without improvement

        Args:
            monitor: a column of the Recorder, a function of the Learner, or None: valid_loss, else train_loss
            comp: 'min' or 'max', or a function such as `np.less`; None: as the metric or its name says
            min_delta: by more than this must a value be better to count
            patience: epochs without improvement after which it acts
            factor: the learning rate is divided by this
            min_lr: and never gets lower than this
            reset_on_fit: forget the best value when a fit begins?
            nan: a NaN is 'worse' than everything, to 'skip', or a reason to 'raise'
        """
        ...
    def reset(self) -> None: ...
    def after_epoch(self) -> None: ...
    def _reduce(self, lrs: Any) -> None: ...
