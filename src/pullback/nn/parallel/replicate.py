"""Copies of a module on several GPUs, whose gradients come back to the module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pullback.nn.parallel import comm
from pullback.nn.parallel._functions import Broadcast

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of the module for each GPU. Their tensors are copies of its parameters: gradients are added up there.

    With `detach` they are tensors without history.
    """
    parameters, buffers = list(network.parameters()), list(network.buffers())
    places = list(devices)
    rows = _copies(parameters, places, detach)
    needing = [buffer for buffer in buffers if buffer.requires_grad]
    others = [buffer for buffer in buffers if not buffer.requires_grad]
    buffer_rows = _copies(needing, places, detach)
    other_rows: list[Any] = comm.broadcast_coalesced(others, places) if others else [()] * len(places)
    replicas = []
    for number in range(len(places)):
        values = [*rows[number], *buffer_rows[number], *other_rows[number]]
        found = {id(given): value for given, value in zip([*parameters, *needing, *others], values, strict=True)}
        replicas.append(_copy(network, found, {}))
    return replicas


def _copies(tensors: list[Any], places: list[Any], detach: bool) -> list[Any]:
    """For each GPU the copies of tensors, recorded unless `detach` is true."""
    if not tensors:
        return [()] * len(places)
    if detach:
        return comm.broadcast_coalesced(tensors, places)
    copies = Broadcast.apply(places, *tensors)
    return [copies[n : n + len(tensors)] for n in range(0, len(copies), len(tensors))]


def _copy(module: Any, found: dict[int, Any], made: dict[int, Any]) -> Any:
    """A module with other tensors. Its parameters are attributes there, since they have a history."""
    known = made.get(id(module))
    if known is not None:
        return known
    replica = made[id(module)] = module._replicate_for_data_parallel()
    replica._former_parameters = OrderedDict()
    for name, child in module._modules.items():
        replica._modules[name] = None if child is None else _copy(child, found, made)
    for name, parameter in module._parameters.items():
        if parameter is None:
            replica._parameters[name] = None
            continue
        value = found[id(parameter)]
        object.__setattr__(replica, name, value)
        replica._former_parameters[name] = value
    for name, buffer in module._buffers.items():
        replica._buffers[name] = None if buffer is None else found[id(buffer)]
    return replica
