# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Forget the state between texts, and keep activations small and slow"""
from ..callback import Callback
from typing import Any

__all__ = ['ModelResetter', 'RNNCallback', 'RNNRegularizer', 'rnn_cbs']
class ModelResetter(Callback):
    """Resets the model's state before training, around validation, and at the end, however it comes"""
    def before_fit(self) -> None: ...
    def reset(self) -> None: ...
    before_train = reset
    before_validate = reset
    after_validate = reset
    cleanup = reset
class RNNCallback(Callback):
    """Keeps a model's activations before and after dropout as `raw_out` and `out`, and leaves the output as `pred`"""
    raw_out: Any
    out: Any
    def after_pred(self) -> None: ...
    def cleanup(self) -> None: ...
class RNNRegularizer(Callback):
    """Adds to the loss `alpha` times AR and `beta` times TAR (Merity et al., 2017, https://arxiv.org/abs/1708.01009)"""
    order: Any
    run_valid: bool
    modes: tuple[Any, ...]
    alpha: float
    beta: float
    def __init__(self, alpha: float = 0.0, beta: float = 0.0) -> None:
        """Adds to the loss `alpha` times AR and `beta` times TAR (Merity et al., 2017, https://arxiv.org/abs/1708.01009)

        Args:
            alpha: weight of the mean square of the activations after dropout
            beta: weight of the mean square of the differences between steps, before dropout
        """
        ...
    def before_fit(self) -> None: ...
    def after_loss(self) -> None: ...
def rnn_cbs(alpha: float = 0.0, beta: float = 0.0) -> list[Any]:
    """The callbacks for a recurrent model

    Args:
        alpha: weight of AR
        beta: weight of TAR
    """
    ...
