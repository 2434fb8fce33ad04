# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""From the times of an epoch: how many workers keep up with the model, and what helps where workers cannot"""

def waiting_hint(workers: int|None, start: float, wait: float, rest: float, cores: int|None = None) -> str:
    """Returns what makes the loop wait less

    Args:
        workers: how many make the batches; None: it is no DataLoader that does
        start: seconds until there was an iterator, and so the workers
        wait: seconds that the loop waited for batches
        rest: seconds of the loop otherwise
        cores: of this machine; None: as many as it has
    """
    ...
