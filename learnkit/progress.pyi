# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""A progress bar and the table of losses and metrics during training, in a notebook, a terminal or a log file"""
from .callback import Callback
from typing import Any

__all__ = ['displays', 'ProgressCallback']
displays: dict[Any, Any]
class ProgressCallback(Callback):
    """Shows a progress bar and a table of the Recorder's rows; plain lines where there is no terminal"""
    name: str
    kind: str|None
    mbar: Any
    due: Any
    begun: tuple[Any, ...]|None
    every: float|None
    plain: Any
    step: Any
    def __init__(self, kind: str|None = None, every: float|None = None) -> None:
        """Shows a progress bar and a table of the Recorder's rows; plain lines where there is no terminal

        Args:
            kind: a name in `displays`: 'notebook', 'terminal', 'lines'; None: depends on the output
            every: seconds between two updates; None: 0.2, for lines 30

        Raises:
            ValueError: `kind` must be None or one of …, not …; `import learnkit.observe.bars` adds 'tqdm' and 'rich'
        """
        ...
    def before_fit(self) -> None: ...
    def _display(self) -> Any: ...
    def before_epoch(self) -> None: ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _begin(self, phase: Any) -> None: ...
    def after_batch(self) -> None: ...
    def _left(self, now: Any) -> Any:
        """How long the whole fit will take from here, if it has several epochs and begins to be known"""
        ...
    def _end(self) -> None: ...
    after_train = _end
    after_validate = _end
    after_cancel_epoch = _end
    after_cancel_fit = _end
    def after_exception(self) -> None: ...
    def cleanup(self) -> None: ...
    after_fit = cleanup
    def _write(self, row: Any) -> None: ...
