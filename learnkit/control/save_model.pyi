# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`SaveModelCallback`: the weights of the best epoch, or a file every so often"""
from collections.abc import Callable
from .every import Every
from .tracker import TrackerCallback
from ..metric import Metric
from pathlib import Path
from typing import Any

__all__ = ['SaveModelCallback']
class SaveModelCallback(TrackerCallback):
    """Saves the model when it is the best so far, and loads the best at the end of the fit; or saves it every so often"""
    held: Any
    n_failed: int
    home: Any
    hash: Any
    wrote: bool
    every: Every
    saved: str|None
    fname: str
    every_epoch: int|bool
    at_end: bool
    with_opt: bool
    def __init__(
        self,
        monitor: str|Callable[..., Any]|Metric|None = 'valid_loss',
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
        """Saves the model when it is the best so far, and loads the best at the end of the fit; or saves it every so often

        Args:
            monitor: a column, metric or function of the Learner; None: valid_loss
            comp: 'min', 'max' or a function such as `np.less`; None: as the metric says
            min_delta: a value must be better by more than this to count
            fname: name of the file, in `learn.path/learn.model_dir`
            every_epoch: save every n-th epoch, beginning with the first, however good it is
            at_end: at the end save the model as it is then, instead of loading the best
            with_opt: save and load the optimizer's state too?
            reset_on_fit: forget the best value when a fit begins?
            every: save every so often, however good it is: text such as '500ba' or '30m'
            nan: a NaN is 'worse' than everything, or 'skip' it, or 'raise' an error

        Raises:
            ValueError: of `every_epoch`, `every` and `at_end` choose one
            ValueError: `every_epoch` must be a number of epochs, 1 or more
        """
        ...
    @property
    def last_saved_path(self) -> Path|None:
        """The file that this run wrote last"""
        ...
    def before_fit(self) -> None: ...
    def reset(self) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue from `state`, in the fit that comes next

        Args:
            state: what `state_dict` returned
        """
        ...
    def _path(self, name: Any) -> Any: ...
    def _written(self, path: Any) -> None: ...
    def _check_own(self, path: Any) -> None:
        """Raise RuntimeError if the file is another one than this run wrote

        Raises:
            RuntimeError: … is no longer what this run saved there…, so its best model is lost: if another run saves there …
        """
        ...
    def _save(self, name: Any) -> None: ...
    def _failed(self, e: Any, hold: Any) -> None: ...
    def _write_held(self) -> None: ...
    def _save_now(self) -> None: ...
    def after_batch(self) -> None: ...
    def after_epoch(self) -> None: ...
    def after_row(self, row: Any, epoch: Any) -> None: ...
    def act(self) -> None: ...
    def after_fit(self) -> None: ...
    def _finish(self) -> Any: ...
    def cleanup(self) -> None: ...
def _hash(path: Any) -> Any: ...
