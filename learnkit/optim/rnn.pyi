# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""ModelResetter and RNNRegularizer: reset hidden state between texts, and regularize activations (AR and TAR)"""
from ..callback import Callback
from typing import Any

__all__ = ['ModelResetter', 'RNNCallback', 'RNNRegularizer', 'rnn_cbs']
class ModelResetter(Callback):
    """Calls the model's `reset` before training, before and after validation, and at the end (fastai's name)"""
    def before_fit(self) -> None: ...
    def reset(self) -> None:
        """Reset the model's hidden state"""
        ...
    before_train = reset
    before_validate = reset
    after_validate = reset
    cleanup = reset
class RNNCallback(Callback):
    """Keeps a model's activations before and after dropout as `raw_out` and `out`; `pred` is the output (fastai's name)"""
    raw_out: Any
    out: Any
    def after_pred(self) -> None: ...
    def cleanup(self) -> None: ...
class RNNRegularizer(Callback):
    """Adds `alpha` times AR and `beta` times TAR to the loss (Merity et al., 2017, https://arxiv.org/abs/1708.01009)"""
    alpha: float
    beta: float
    def __init__(self, alpha: float = 0.0, beta: float = 0.0) -> None:
        """Adds `alpha` times AR and `beta` times TAR to the loss (Merity et al., 2017, https://arxiv.org/abs/1708.01009)

        Args:
            alpha: weight of AR: the mean square of the activations after dropout
            beta: weight of TAR: the mean square of their differences between time steps, before dropout

        Raises:
            ValueError: alpha and beta are weights of penalties, 0 or more, not … and …
        """
        ...
    def before_fit(self) -> None: ...
    def after_loss(self) -> None: ...
def rnn_cbs(alpha: float = 0.0, beta: float = 0.0) -> list[Any]:
    """Returns the callbacks for a recurrent model (fastai's name)

    Args:
        alpha: weight of AR; 0: none
        beta: weight of TAR; 0: none

    Returns:
        callbacks
    """
    ...
