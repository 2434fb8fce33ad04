# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What is logged waits here for the device, and leaves in the order in which it was logged"""
import torch
from collections.abc import Callable
from ..learner import Learner
from typing import Any

__all__ = ['LogRow', 'media_kind', 'as_media', 'MediaRow', 'Outbox']
def stack_scalars(values: list[Any]|tuple[Any, ...]) -> torch.Tensor:
    """Return one tensor of all `values`, on the device of the first

    Args:
        values: tensors of one element each; they may be on several devices, as the parts of a model may

    Returns:
        of shape (len(values),)
    """
    ...
class LogRow:
    """Numbers by name, of which some may still be on their device"""
    size: int
    waits: bool
    step: int
    then: Callable[..., Any]|None
    metrics: dict[Any, Any]
    names: list[Any]
    values: Any
    def __init__(self, metrics: dict[Any, Any], step: int, then: Callable[..., Any]|None = None) -> None:
        """Numbers by name, of which some may still be on their device

        Args:
            metrics: floats, or tensors of one element, by name
            step: the training batches of all fits so far
            then: called with the numbers when they are read

        Raises:
            TypeError: `…` must be one number to be logged
        """
        ...
    def announce(self, learn: Callable[..., Any]) -> None:
        """Call the event `log_metrics`, after `then`

        Args:
            learn: the Learner
        """
        ...
def media_kind(v: Any) -> str:
    """Return as what `v` is logged; raises TypeError if that cannot be told

    Args:
        v: what is to be logged

    Returns:
        'texts', 'images', 'histograms' or 'tables'

    Raises:
        TypeError: a text, a tensor (n, channels, height, width) of images, a flat tensor for a histogram, a figure, …
    """
    ...
def as_media(v: Any) -> Any:
    """Return a figure as an image, an array as a tensor, and anything else unchanged

    Args:
        v: a figure of matplotlib, an array, or anything else
    """
    ...
class MediaRow:
    """Texts, images, histograms or tables by name, of which some may still be on their device"""
    names: tuple[Any, ...]
    kind: str
    step: int
    media: dict[Any, Any]
    size: Any
    waits: Any
    def __init__(self, kind: str, media: dict[Any, Any], step: int) -> None:
        """Texts, images, histograms or tables by name, of which some may still be on their device

        Args:
            kind: 'texts', 'images', 'histograms' or 'tables'
            media: what is logged, by name
            step: the training batches of all fits so far
        """
        ...
    def announce(self, learn: Callable[..., Any]) -> None:
        """Call the event `log_media`, with the tensors on the CPU; waits for their device

        Args:
            learn: the Learner
        """
        ...
def _plain(v: Any, kind: Any) -> Any: ...
class Outbox:
    """Rows on their way to the loggers, in the order in which they were logged"""
    max_pending: int
    max_seconds: float
    rows: Any
    unread: list[Any]
    busy: bool
    since: Any
    size: int
    start: Any
    fitting: bool
    files: dict[Any, Any]
    def __init__(self) -> None: ...
    def step(self, learn: Learner) -> int:
        """Return the number of training batches so far, in all fits that were logged

        Args:
            learn: the Learner
        """
        ...
    def put(self, learn: Learner, metrics: dict[Any, Any]|None, then: Callable[..., Any]|None = None) -> None:
        """Log `metrics`; not in a validation or prediction of its own, which leaves no trace

        Args:
            learn: the Learner
            metrics: numbers by name: floats, or tensors of one element; None or empty: nothing is logged
            then: called with the numbers when they are read
        """
        ...
    def logs(self, learn: Learner) -> bool:
        """Whether anything is logged now: in a fit, or outside of any run

        Args:
            learn: the Learner
        """
        ...
    def _add(self, learn: Any, row: Any) -> None: ...
    def ready(self, learn: Learner) -> bool:
        """Whether rows may leave now: it is certain that this part of the run was not logged before

        Args:
            learn: the Learner
        """
        ...
    def flush(self, learn: Learner) -> None:
        """Read all rows from the device at once, and announce them by `log_metrics` and `log_media`

        Args:
            learn: the Learner
        """
        ...
    def _read(self) -> None: ...
    def clear(self) -> None:
        """Drop all rows"""
        ...
    def begin(self) -> None:
        """Begin a fit"""
        ...
    def end(self, learn: Learner) -> None:
        """End a fit: what it logged is announced, and the next one counts on from its last step

        Args:
            learn: the Learner
        """
        ...
