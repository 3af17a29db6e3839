"""Copies of tensors between GPUs: broadcast, add up, scatter, gather. Nothing here is recorded; `_functions.py` records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from pullback import functions
from pullback.autograd.grad_mode import no_grad
from pullback.backend.device import device as Device
from pullback.backend.device import usable_device
from pullback.modes.user_warnings import warn_user

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _unrecorded(function: _Function) -> _Function:
    return cast(_Function, no_grad()(function))


def _place(device: Any) -> Device:
    """A device from a number, a name or a device; -1 means the CPU, None the current GPU."""
    return Device("cpu") if device == -1 else usable_device("cuda" if device is None else device)


@_unrecorded
def broadcast(
    tensor: Any, devices: Sequence[Any] | None = None, *, out: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Copies of a tensor on GPUs; itself where it is already there. With `out`, into those tensors."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        return tuple([target.copy_(tensor) for target in out])
    return tuple([tensor.to(_place(device)) for device in devices or ()])


def broadcast_coalesced(
    tensors: Sequence[Any], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[tuple[Any, ...]]:
    """Copies of several tensors on each GPU: a row of tensors for each of `devices`."""
    copies = [broadcast(tensor, devices) for tensor in tensors]
    return [tuple([copy[number] for copy in copies]) for number in range(len(devices))]


@_unrecorded
def reduce_add(inputs: Sequence[Any], destination: Any = None) -> Any:
    """The sum of tensors of several GPUs, on one of them: the current one unless told otherwise."""
    for number, tensor in enumerate(inputs):
        if tensor.device.type == "cpu":
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {number} is on CPU")
        if tensor.shape != inputs[0].shape:
            raise ValueError(
                f"input {number} has invalid size: got {'x'.join(map(str, tensor.shape))}, but expected "
                f"{'x'.join(map(str, inputs[0].shape))}"
            )
    place = _place(destination)
    if not any(tensor.device == place for tensor in inputs):
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return inputs[0]
    total = inputs[0].to(place) + inputs[1].to(place)
    for tensor in inputs[2:]:
        total += tensor.to(place)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Any, ...]:
    """The sums of the tensors in the same places of several rows, one row for each GPU."""
    return tuple([reduce_add(column, destination) for column in zip(*inputs, strict=True)])


@_unrecorded
def scatter(
    tensor: Any, devices: Sequence[Any] | None = None, chunk_sizes: Sequence[int] | None = None, dim: int = 0,
    streams: Any = None, *, out: Sequence[Any] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Parts of a tensor along a dimension, one on each GPU. With `out`, into those tensors."""
    if out is not None:
        if devices is not None:
            raise RuntimeError(f"'devices' must not be specified when 'out' is specified, but got devices={devices}")
        parts = functions.split(tensor, [target.shape[dim] for target in out], dim)
        return tuple([target.copy_(part) for target, part in zip(out, parts, strict=True)])
    places = [_place(device) for device in devices or ()]
    parts = (
        functions.chunk(tensor, len(places), dim)
        if chunk_sizes is None
        else functions.split(tensor, list(chunk_sizes), dim)
    )
    return tuple([part.to(place) for part, place in zip(parts, places, strict=False)])


@_unrecorded
def gather(tensors: Sequence[Any], dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """The tensors of several GPUs joined along a dimension, on one device. With `out`, into that tensor."""
    if out is not None:
        if destination is not None:
            raise RuntimeError(f"'destination' must not be specified when 'out' is specified, but got {destination}")
        return out.copy_(functions.cat([tensor.to(out.device) for tensor in tensors], dim))
    if destination == -1:
        warn_user('Using -1 to represent CPU tensor is deprecated. Please use a device object or string, e.g., "cpu".')
    place = _place(destination)
    return functions.cat([tensor.to(place) for tensor in tensors], dim)
