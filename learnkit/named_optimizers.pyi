# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""PyTorch's SGD, Adam, AdamW and RMSprop, with the names of hyper-parameters that a Learner uses"""
from collections.abc import Iterable
from .optimizer import OptimWrapper
from torch import Tensor
from typing import Any

__all__ = ['SGD', 'RMSprop', 'Adam', 'AdamW']
def SGD(params: Iterable[Any], lr: float|Tensor|slice|list[Any]|None = None, **kwargs: Any) -> OptimWrapper:
    """Stochastic gradient descent, `torch.optim.SGD`

    Args:
        params: parameters, or one list of them for each group
        lr: learning rate; None: 1e-3
        kwargs: `mom`, `wd`, or other arguments of PyTorch's
    """
    ...
def RMSprop(params: Iterable[Any], lr: float|Tensor|slice|list[Any]|None = None, **kwargs: Any) -> OptimWrapper:
    """RMSprop, `torch.optim.RMSprop`

    Args:
        params: parameters, or one list of them for each group
        lr: learning rate; None: 1e-2
        kwargs: `sqr_mom`, `mom`, `wd`, `eps`, or other arguments of PyTorch's
    """
    ...
def Adam(params: Iterable[Any], lr: float|Tensor|slice|list[Any]|None = None, **kwargs: Any) -> OptimWrapper:
    """Adam, `torch.optim.Adam`: weight decay is added to the gradient, unless `decouple_wd`

    Args:
        params: parameters, or one list of them for each group
        lr: learning rate; None: 1e-3
        kwargs: `mom`, `sqr_mom`, `wd`, `decouple_wd`, or other arguments of PyTorch's
    """
    ...
def AdamW(params: Iterable[Any], lr: float|Tensor|slice|list[Any]|None = None, **kwargs: Any) -> OptimWrapper:
    """Adam with decoupled weight decay, `torch.optim.AdamW`: a decay of .01 if none is given

    Args:
        params: parameters, or one list of them for each group
        lr: learning rate; None: 1e-3
        kwargs: `mom`, `sqr_mom`, `eps`, `wd`, or other arguments of PyTorch's
    """
    ...
