# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The same model, arranged for the hardware: channels last, and compiled"""
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['set_layout', 'ChannelsLast']
_layouts: dict[Any, Any]
def set_layout(model: nn.Module, last: bool = True) -> list[Any]:
    """Arrange the weights of convolutions in memory; returns those that were changed

    Args:
        last: channels last, or back to contiguous?
    """
    ...
class ChannelsLast(Callback):
    """Has the model in channels last order while it runs (fastai's name and order)"""
    changed: Any
    def before_fit(self) -> None: ...
    def cleanup(self) -> None: ...
