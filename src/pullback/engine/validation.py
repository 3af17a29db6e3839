"""Checks on gradients that come from outside the rules: users, hooks and custom Functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.device import device, device_of
from pullback.errors import complex_gradient
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import Node
from pullback.kernels.broadcasting import is_expandable_to
from pullback.tensor.tensor import Tensor


def fit_gradients(node: Node, grads: Sequence[Any]) -> list[Any]:
    """Check each gradient a node returned against the tensor it is for; sum over broadcast dimensions and cast."""
    fitted: list[Any] = []
    for index, grad in enumerate(grads):
        edge = node.next_edges[index] if index < len(node.next_edges) else None
        if edge is None or grad is None:
            fitted.append(None if edge is None else grad)
            continue
        following = edge[0]
        if type(grad) is Tensor and following.shape == grad._array.shape and following.dtype is grad._array.dtype:
            fitted.append(grad)  # the node of one result, on no device of its own
            continue
        wanted = following.input_metadata(edge[1])
        fitted.append(grad if wanted is None else fit_gradient(node, index, grad, wanted))
    return fitted


def fit_gradient(node: Node | None, index: int, grad: Tensor, wanted: InputMetadata) -> Tensor:
    """Bring one gradient into the wanted shape and dtype, or raise; without a node, the user gave it."""
    place = wanted.known_device
    fitted: Any = grad if place is None or device_of(grad._array) is place else on_device(grad, place, index, node)
    shape = grad._array.shape
    if shape != wanted.shape:
        if not is_expandable_to(wanted.shape, shape):
            raise RuntimeError(
                f"{_by(node)}invalid gradient at index {index} - got {list(shape)} but "
                f"expected shape compatible with {list(wanted.shape)}"
            )
        fitted = fitted.sum_to_size(wanted.shape)
    if grad._array.dtype != wanted.numpy_dtype and not wanted.any_dtype:
        if grad._array.dtype.kind in "cW" and wanted.numpy_dtype.kind not in "cW":
            raise complex_gradient(None if node is None else node.name(), index)
        fitted = fitted.to(wanted.dtype)
    return fitted


def on_device(grad: Tensor, place: device, index: int, node: Node | None = None) -> Tensor:
    """Bring a gradient to its device: a number is moved there, a tensor of another device is an error, as in PyTorch."""
    if grad.device == place:
        return grad
    if grad.dim():
        raise RuntimeError(
            f"{_by(node)}invalid gradient at index {index} - expected device {place} but got {grad.device}"
        )
    moved: Tensor = grad.to(place)
    return moved


def _by(node: Node | None) -> str:
    return "" if node is None else f"Function {node.name()} returned an "
