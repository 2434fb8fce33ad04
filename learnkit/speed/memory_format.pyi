# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""ChannelsLast and to_channelslast: convolutions with the channels of a pixel next to each other in memory"""
import torch
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['set_memory_format', 'ChannelsLast']
_formats: dict[Any, Any]
def set_memory_format(model: nn.Module, channels_last: bool = True) -> list[torch.Tensor]:
    """Rearranges the weights of convolutions in memory; returns those that were changed

    Args:
        model: its weights are rearranged in place
        channels_last: False: back to contiguous
    """
    ...
class ChannelsLast(Callback):
    """Stores the weights of convolutions in channels last order during a run (fastai's name and order)"""
    changed: Any
    def before_fit(self) -> None: ...
    def cleanup(self) -> None: ...
