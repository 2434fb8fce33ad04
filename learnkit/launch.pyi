# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Which launcher started this process (torchrun, srun, mpirun), and the group of processes that it belongs to"""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ['Launch', 'launched', 'join_group', 'leave_group']
@dataclass(frozen=True)
class Launch:
    """How a launcher started this process"""
    by: str
    """the launcher"""
    rank: int
    """the number of this process, from 0"""
    world: int
    """how many processes there are"""
    local_rank: int
    """its number on this machine: which of the machine's accelerators it takes"""
    addr: str|None
    """the machine of process 0; None: unknown"""
    port: str
    """the port on which process 0 waits for the others"""
def _first_host(nodes: Any) -> Any:
    """The first machine of a list in Slurm's form: 'gpu[003-004,7],cpu1' → 'gpu003'"""
    ...
def _port(env: Any, job: Any) -> Any: ...
def _slurm(env: Any) -> Any: ...
def _mpi(by: Any, env: Any, job: Any, rank: Any, world: Any, local: Any, here: Any) -> Any: ...
def _open_mpi(env: Any) -> Any: ...
def _mpich(env: Any) -> Any: ...
def _torchrun(env: Any) -> Any: ...
_launchers: dict[Any, Any]
def launched(env: Mapping[str, str]|None = None) -> Launch|None:
    """Return how a launcher started this process; None if it runs alone

    Args:
        env: environment variables; None: those of this process
    """
    ...
def _devices_of(places: Any) -> Any:
    """Where the processes are, for people: '2 × cpu', or '8 × cuda on 2 machines'"""
    ...
_introduced: list[Any]
def introduce(own: bool = False) -> None:
    """Say in one line, once for each group, which processes train together; all of them call it

    Args:
        own: did `join_group` make the group?

    Raises:
        RuntimeError: … processes took accelerator … of …: the launcher should say LOCAL_RANK, which differs between the …
    """
    ...
def _name_of_attempt(store: Any, launch: Any, timeout: Any) -> Any: ...
def _meet(launch: Any, timeout: Any) -> dict[str, Any]:
    """Where the processes meet, as arguments of `init_process_group`

    Raises:
        RuntimeError: … of … processes did not come within … seconds
    """
    ...
def _backend(device: Any) -> str: ...
def check_seconds(timeout: float) -> float:
    """Return `timeout`; raises ValueError if no process could wait so long

    Args:
        timeout: what should be a time

    Raises:
        ValueError: `timeout` is the number of seconds that a process waits for the others, such as 600
    """
    ...
def join_group(timeout: float = 600.0) -> None:
    """Make the group of the processes that a launcher started, if there is none; raises RuntimeError if it cannot be

    Args:
        timeout: seconds after which a process that waits for another one gives up

    Raises:
        ValueError: `timeout` is the number of seconds that a process waits for the others, such as 600
        RuntimeError: … started … processes on several machines, and does not say where they can meet: set MASTER_ADDR to …
        RuntimeError: process … should take accelerator … of its machine, which has …: start as many processes on each …
    """
    ...
def leave_group() -> None:
    """Destroy the group of processes, if there is one"""
    ...
