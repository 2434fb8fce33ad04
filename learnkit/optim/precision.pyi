# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""MixedPrecision, to_fp16 and to_bf16: training and prediction in 16 bits with torch.amp, on any device"""
import torch
from enum import StrEnum
from ..callback import Callback
from typing import Any

__all__ = ['AMPMode', 'MixedPrecision']
class AMPMode(StrEnum):
    """The 16-bit types, for completion in editors; the strings 'fp16' and 'bf16' do as well (fastai's name)"""
    FP16 = 'fp16'
    BF16 = 'bf16'
_dtypes: dict[Any, Any]
class MixedPrecision(Callback):
    """Mixed precision: forward pass and loss in 16 bits where that is safe, by `torch.amp` (fastai's name and order)"""
    scaler: Any
    pending: bool
    together: bool
    amp_mode: AMPMode
    kwargs: Any
    open: list[Any]
    device_type: Any
    finite: bool
    def __init__(self, amp_mode: str|AMPMode = 'fp16', **kwargs: Any) -> None:
        """Mixed precision: forward pass and loss in 16 bits where that is safe, by `torch.amp` (fastai's name and order)

        Args:
            amp_mode: 'fp16' or 'bf16'
            kwargs: passed on to `torch.amp.GradScaler`, for fp16: `init_scale`, `growth_interval` …

        Raises:
            ValueError: amp_mode must be 'fp16' or 'bf16'
        """
        ...
    @property
    def dtype(self) -> torch.dtype:
        """The 16-bit type"""
        ...
    @property
    def trains(self) -> bool:
        """Whether this run is a fit or `lr_find`, rather than a validation or prediction"""
        ...
    def before_fit(self) -> None: ...
    def before_validate(self) -> None: ...
    def before_pred(self) -> None: ...
    def after_pred(self) -> None: ...
    def after_loss(self) -> None:
        """Leave the `autocast` of this run, and any that was left open within it"""
        ...
    after_cancel_batch = after_loss
    after_cancel_train = after_loss
    after_cancel_validate = after_loss
    after_cancel_epoch = after_loss
    after_cancel_fit = after_loss
    def cleanup(self) -> None: ...
    def _exit_to(self, n: Any) -> None: ...
    def before_backward(self) -> None: ...
    def before_step(self) -> None: ...
    def after_step(self) -> None: ...
    @property
    def param_groups(self) -> list[Any]:
        """The optimizer's parameter groups, for `GradScaler`"""
        ...
    def step(self, *args: Any, **kwargs: Any) -> None:
        """Record that the gradients are finite: `GradScaler` calls this in place of the optimizer's step

        Args:
            args: not used
            kwargs: not used
        """
        ...
    def _update(self) -> None: ...
    def _make_scaler(self) -> None: ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Restore the scale from a checkpoint

        Args:
            state: what `state_dict` returned
        """
        ...
