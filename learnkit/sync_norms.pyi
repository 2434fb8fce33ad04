# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Batch norms that average over all processes of distributed training, for small batches"""
from torch import nn
from typing import Any

def _is_unsynced(m: Any) -> Any: ...
def sync_norms(model: nn.Module) -> dict[str, nn.Module]:
    """Replaces batch norms by `nn.SyncBatchNorm`, which averages over all processes; returns the old layers by name

    Args:
        model: its batch norms are replaced in place
    """
    ...
def unsync_norms(model: nn.Module, old: dict[str, nn.Module]) -> None:
    """Puts the old batch norms back, with the current weights and averages

    Args:
        model: a model after `sync_norms`
        old: what `sync_norms` returned
    """
    ...
