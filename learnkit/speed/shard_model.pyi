# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Shards the modules of a model by a policy, and lets optimizers that exist already take over the sharded parameters"""
from collections.abc import Callable, Iterable
from torch import nn
from typing import Any

_never_called: tuple[Any, ...]
def _by_size(model: Any, n: Any) -> Any:
    """Modules with at least `n` parameters that are in no smaller such module, the inner ones first"""
    ...
def find_units(model: nn.Module, by: int|type[Any]|tuple[Any, ...]|Callable[..., Any]) -> list[nn.Module]:
    """Returns the modules whose parameters are to be fetched together, the inner ones first, the model itself last

    Args:
        model: the model
        by: a number of parameters, or as in `pick_modules`
    """
    ...
def swap_params(opt: Any, new: dict[int, Any]) -> None:
    """Replaces parameters of an optimizer; its state stays, laid out as the new parameters are

    Args:
        opt: an optimizer, or an `OptimWrapper`
        new: the `id` of a parameter -> the one that takes its place
    """
    ...
def _check_shardable(model: Any, mesh: Any) -> None: ...
def _send_weights(model: Any) -> None:
    """Every process gets the parameters and buffers of process 0"""
    ...
def shard_model(
    model: nn.Module,
    by: int|type[Any]|tuple[Any, ...]|Callable[..., Any],
    mesh: Any,
    opts: Iterable[Any] = (),
    policy: Callable[..., Any] = ...,
) -> None:
    """Divides the parameters of a model among the processes, in place, and swaps them in `opts`; a sharded model stays

    Args:
        model: the model, in each process
        by: the units: see `find_units`
        mesh: a `DeviceMesh` over all processes
        opts: optimizers of its parameters
        policy: more arguments of `fully_shard` for a unit; called with: is it the model itself?

    Raises:
        ValueError: the model is wrapped in …: give the Learner the model itself
        ValueError: the mesh has … of … processes, and each process must have its own part of the data: give a mesh …
        ValueError: parameters of the model are DTensors already, as `parallelize_module` makes them: tensor …
        ValueError: parameters of the model are on `meta` and have no values: make the model on the CPU, or shard it …
    """
    ...
