# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""valley, slide, minimum and steep: suggest a learning rate from the losses of a learning-rate range test"""
from typing import Any

__all__ = ['valley', 'slide', 'minimum', 'steep', 'SuggestionMethod']
def _check_curve(lrs: Any, losses: Any, n: Any, what: Any) -> tuple[Any, ...]:
    """Returns the curve as lists of floats, if it has at least `n` points

    Raises:
        ValueError: … learning rates and … losses are not a curve: give one loss for each learning rate
        ValueError: `…` needs a curve of at least … points to suggest a learning rate from, not of …: use more batches …
    """
    ...
def valley(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """Valley: a third to a half down the longest descent of the loss; raises ValueError for less than 2 points

    Args:
        lrs: the learning rates, growing
        losses: the smoothed loss at each learning rate
        num_it: not used; fastai passes the number of batches

    Returns:
        the suggested learning rate, and the point (learning rate, loss) to mark in the plot

    Raises:
        ValueError: … learning rates and … losses are not a curve: give one loss for each learning rate
        ValueError: `valley` needs a curve of at least 2 points to suggest a learning rate from, not of …: use more …
    """
    ...
def slide(
    lrs: list[Any],
    losses: list[Any],
    num_it: int = 0,
    lr_diff: int = 15,
    thresh: float = 0.005,
    adjust_value: float = 1.0,
) -> tuple[Any, ...]:
    """Slide: from the right, the first interval whose ends have the same slope; raises ValueError for a short curve

    Args:
        lrs: the learning rates, growing
        losses: the smoothed loss at each learning rate
        num_it: not used; fastai passes the number of batches
        lr_diff: the number of points between two slopes that are compared
        thresh: the largest difference between them
        adjust_value: a factor for the suggestion

    Returns:
        the suggested learning rate, and the point (learning rate, loss) to mark in the plot

    Raises:
        ValueError: … learning rates and … losses are not a curve: give one loss for each learning rate
        ValueError: `slide` needs a curve of at least … points to suggest a learning rate from, not of …: use more …
    """
    ...
def _loss_at(lr: Any, lrs: Any, losses: Any) -> Any:
    """Returns the loss at learning rate `lr`, interpolated on a logarithmic axis"""
    ...
def minimum(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """Minimum: a tenth of the learning rate with the lowest loss; raises ValueError for an empty curve

    Args:
        lrs: the learning rates, growing
        losses: the smoothed loss at each learning rate
        num_it: not used; fastai passes the number of batches

    Returns:
        the suggested learning rate, and the point (learning rate, loss) to mark in the plot

    Raises:
        ValueError: … learning rates and … losses are not a curve: give one loss for each learning rate
        ValueError: `minimum` needs a curve of at least 1 points to suggest a learning rate from, not of …: use more …
    """
    ...
def steep(lrs: list[Any], losses: list[Any], num_it: int = 0) -> tuple[Any, ...]:
    """Steep: the learning rate where the loss falls fastest; raises ValueError for less than 2 points

    Args:
        lrs: the learning rates, growing
        losses: the smoothed loss at each learning rate
        num_it: not used; fastai passes the number of batches

    Returns:
        the suggested learning rate, and the point (learning rate, loss) to mark in the plot

    Raises:
        ValueError: … learning rates and … losses are not a curve: give one loss for each learning rate
        ValueError: `steep` needs a curve of at least 2 points to suggest a learning rate from, not of …: use more …
    """
    ...
class SuggestionMethod:
    """The suggestion functions under their fastai names: `SuggestionMethod.Valley` is `valley`"""
    Valley: Any
    Slide: Any
    Minimum: Any
    Steep: Any
