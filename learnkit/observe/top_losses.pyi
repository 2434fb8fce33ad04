# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Draw the items with the largest losses, or list them in a table"""
from typing import Any

def is_image(t: Any) -> bool:
    """Does the batch look like images: (item, channel, row, column) with 1, 3 or 4 channels, or (item, row, column)?

    Args:
        t: a batch of inputs
    """
    ...
def _to_plot(t: Any) -> Any:
    """One item as matplotlib takes it: channels last, values scaled to the range from 0 to 1"""
    ...
def _draw_items(images: Any, rows: Any, ncols: Any, figsize: Any) -> Any:
    """Draw images in a grid, with titles from their `rows`; returns the matplotlib axes"""
    ...
