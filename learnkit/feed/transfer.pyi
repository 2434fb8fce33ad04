# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Copies batches from the CPU to an accelerator on a stream of their own, while the accelerator computes"""
import torch
from typing import Any

def is_plain_batch(b: Any) -> bool:
    """Returns whether `b` consists of tuples, lists, dicts and dense CPU tensors, and can be copied tensor by tensor

    Args:
        b: a batch
    """
    ...
class TransferStream:
    """Copies batches to an accelerator on a stream of its own"""
    device: torch.device
    streams: Any
    stream: Any
    def __init__(self, device: torch.device) -> None:
        """Copies batches to an accelerator on a stream of its own

        Args:
            device: the accelerator
        """
        ...
    def send(self, b: Any) -> tuple[Any, ...]:
        """Begins to copy `b`, and returns the copy and the event that it is complete

        Args:
            b: a batch for which `is_plain_batch` is true
        """
        ...
    def _copy(self, o: Any) -> Any: ...
    def receive(self, copy: Any, event: Any) -> Any:
        """Returns `copy` for use on the current stream, which waits for the event and keeps the memory until it is done

        Args:
            copy: what `send` returned: the copy,
            event: and its event
        """
        ...
def transfer_stream(device: torch.device|None) -> TransferStream|None:
    """Returns the stream to `device`, `None` if it has none; all share it, as the allocator keeps memory for each stream

    Args:
        device: where batches go
    """
    ...
