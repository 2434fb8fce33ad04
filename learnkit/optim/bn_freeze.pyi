# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Keep the running statistics of frozen batch norms as they are (BnFreeze)"""
from ..callback import Callback
from torch import nn
from typing import Any

__all__ = ['bn_types', 'set_bn_eval', 'BnFreeze']
bn_types: tuple[Any, ...]
def set_bn_eval(m: nn.Module, use_eval: bool = True) -> None:
    """Set the batch norms of `m` whose weights are all frozen to evaluation mode (fastai's name)

    Args:
        m: the model, or a single layer
        use_eval: True: evaluation mode; False: back to training mode
    """
    ...
class BnFreeze(Callback):
    """Keeps frozen batch norms in evaluation mode during training, so that their running statistics stay (fastai's name)"""
    def before_train(self) -> None: ...
