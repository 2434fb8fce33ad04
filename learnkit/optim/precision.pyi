# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""16 bits where they are enough, 32 where they are not"""
import torch
from enum import Enum
from ..callback import Callback
from typing import Any

__all__ = ['AMPMode', 'MixedPrecision']
class AMPMode(str, Enum):
    """The 16-bit types, for editors to complete; their values will do as well (fastai's name)"""
    FP16: str
    BF16: str
_dtypes: dict[Any, Any]
class MixedPrecision(Callback):
    """Forward pass and loss in 16 bits where that is good enough, by `torch.amp` on any device (fastai's name and order)"""
    order: int
    saves: tuple[Any, ...]
    scaler: Any
    pending: bool
    amp_mode: AMPMode
    kwargs: Any
    open: list[Any]
    device_type: Any
    finite: bool
    def __init__(self, amp_mode: str|AMPMode = 'fp16', **kwargs: Any) -> None:
        """Forward pass and loss in 16 bits where that is good enough, by `torch.amp` on any device (fastai's name and order)

        Args:
            amp_mode: 'fp16' or 'bf16'
            kwargs: of `torch.amp.GradScaler`, which is for fp16: `init_scale`, `growth_interval`, …
        """
        ...
    @property
    def dtype(self) -> torch.dtype:
        """The 16-bit type"""
        ...
    @property
    def trains(self) -> bool:
        """Is this run a fit, rather than one within or without?"""
        ...
    def before_fit(self) -> None: ...
    def before_pred(self) -> None: ...
    def after_pred(self) -> None: ...
    def after_loss(self) -> None:
        """Leave what this run has entered, and what was left open within it"""
        ...
    after_cancel_batch = after_loss
    after_cancel_train = after_loss
    after_cancel_validate = after_loss
    after_cancel_epoch = after_loss
    after_cancel_fit = after_loss
    def cleanup(self) -> None: ...
    def _leave(self, n: Any) -> None: ...
    def before_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def after_step(self) -> None: ...
    @property
    def param_groups(self) -> list[Any]:
        """Those of the optimizer, for which the callback stands in"""
        ...
    def step(self, *args: Any, **kwargs: Any) -> None:
        """`GradScaler` would step here: the gradients are finite"""
        ...
    def _update(self) -> None: ...
    def _make_scaler(self) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Put back what `state_dict` gave"""
        ...
