# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Train on mixtures of items: whole images blended (MixUp), or a box pasted from another image (CutMix)"""
import torch
from .mix_handler import MixHandler
from typing import Any

__all__ = ['MixUp', 'CutMix']
def _need_floats(xb: Any, who: Any) -> None: ...
class MixUp(MixHandler):
    """MixUp: blends each item with another one (Zhang et al., 2017, https://arxiv.org/abs/1710.09412)"""
    def __init__(self, alpha: float = 0.4) -> None:
        """MixUp: blends each item with another one (Zhang et al., 2017, https://arxiv.org/abs/1710.09412)

        Args:
            alpha: both parameters of the Beta distribution of `lam`: near 0 hardly any mixing, 1 is uniform
        """
        ...
    def before_batch(self) -> None: ...
class CutMix(MixHandler):
    """CutMix: pastes a box of another image into each image (Yun et al., 2019, https://arxiv.org/abs/1905.04899)"""
    def __init__(self, alpha: float = 1.0) -> None:
        """CutMix: pastes a box of another image into each image (Yun et al., 2019, https://arxiv.org/abs/1905.04899)

        Args:
            alpha: both parameters of the Beta distribution of `lam`: near 0 hardly any mixing, 1 is uniform
        """
        ...
    def before_batch(self) -> None: ...
    def size(self, xb: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the size of the images; raises ValueError if the inputs are not images of one size

        Args:
            xb: the inputs of the batch

        Returns:
            height and width in pixels

        Raises:
            ValueError: CutMix cuts the same box out of all inputs, which must be images (item, channel, row, column) of …
        """
        ...
    def rand_bbox(self, W: int, H: int, lam: torch.Tensor) -> tuple[Any, ...]:
        """Sample a box of `1-lam` of the image's area with a random centre, clipped at the edges (fastai's name)

        Args:
            W: width of the image in pixels
            H: height of the image in pixels
            lam: the share of the image outside the box: a tensor with one number

        Returns:
            left, top, right, bottom, as tensors
        """
        ...
