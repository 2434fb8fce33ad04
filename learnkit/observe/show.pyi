# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`dls.show_batch()` and `learn.show_results()`: images, masks, text and numbers, drawn or in a table"""
from collections.abc import Callable
from ..history import History
from torch import Tensor
from typing import Any

def is_image(t: Any) -> bool:
    """Does the batch look like images: (item, channel, row, column) with 1, 3 or 4 channels, or (item, row, column)?

    Args:
        t: a batch of inputs
    """
    ...
def is_mask(t: Any, images: Tensor) -> bool:
    """Are these masks: a class, or yes and no, for each pixel of the images?

    Args:
        t: a batch of targets or decoded predictions
        images: the images that they belong to
    """
    ...
def normalization_of(ds: Any) -> tuple[Any, ...]|None:
    """Return mean and standard deviation of the normalization among a data set's transforms, None if there is none

    Args:
        ds: a data set
    """
    ...
def to_drawing(images: Tensor, stats: tuple[Any, ...]|None = None) -> Any:
    """Convert images to what matplotlib draws, all on one scale

    Args:
        images: (item, channel, row, column) or (item, row, column), all that is drawn together
        stats: mean and standard deviation of each channel by which they were normalized

    Returns:
        a NumPy array with the channels last and values from 0 to 1
    """
    ...
def draw_images(
    images: Tensor,
    titles: list[Any],
    masks: Tensor|None = None,
    stats: tuple[Any, ...]|None = None,
    colors: list[Any]|None = None,
    ncols: int = 5,
    figsize: tuple[Any, ...]|None = None,
) -> Any:
    """Draw images in a grid; returns the matplotlib axes

    Args:
        images: the images, of one scale
        titles: one for each
        masks: one for each image, drawn over it
        stats: mean and standard deviation by which they were normalized
        colors: of the titles; None: black
        ncols: images in a row
        figsize: width and height in inches; None: by the number of images
    """
    ...
def _overlay(ax: Any, mask: Any, highest: Any) -> None: ...
def _is_texts(t: Any) -> Any: ...
def _item(t: Any, i: Any) -> Any: ...
def _first(n: Any, t: Any) -> Any: ...
class Items:
    """Some items of a batch, with their targets and predictions, to be drawn or listed"""
    inputs: dict[Any, Any]
    columns: dict[Any, Any]
    vocab: list[Any]|None
    decode: Callable[..., Any]|None
    images: Any
    def __init__(
        self,
        inputs: Any,
        columns: dict[Any, Any],
        n: int = 10,
        vocab: list[Any]|None = None,
        decode: Callable[..., Any]|None = None,
    ) -> None:
        """Some items of a batch, with their targets and predictions, to be drawn or listed

        Args:
            inputs: of a batch
            columns: targets, and predictions if there are any, by the name of their column
            n: how many items, at most those of the batch
            vocab: names of the classes
            decode: from a list of token numbers to text

        Raises:
            ValueError: `n` must be a number of items, 1 or more
        """
        ...
    def __len__(self) -> int: ...
    def texts(self, t: Any, vocab: list[Any]|None = None) -> list[Any]:
        """Return the values of the items as text

        Args:
            t: inputs, targets or predictions of all items
            vocab: names of the classes, if they may be classes
        """
        ...
    def table(self) -> History:
        """Return a table with a row for each item"""
        ...
    def show(self, stats: tuple[Any, ...]|None = None, **kwargs: Any) -> Any:
        """Draw images with their targets and predictions; list other items in a table

        Args:
            stats: mean and standard deviation by which images were normalized
            kwargs: `ncols` and `figsize`, for images
        """
        ...
    def _draw_masks(self, masks: Any, titles: Any, stats: Any, **kwargs: Any) -> Any:
        """Each image as often as it has masks, beside each other"""
        ...
def first_batch(dl: Any) -> Any:
    """Return the first batch of a loader, which then stands where it stood; raises ValueError if there is none

    Args:
        dl: a loader

    Raises:
        ValueError: the loader is empty, so there is nothing to show
    """
    ...
def _stats(dl: Any) -> Any: ...
