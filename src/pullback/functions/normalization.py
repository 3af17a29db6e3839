"""Normalizations in the forms that PyTorch's top-level functions have."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.checks.dtypes import require_parameter_dtypes
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.functions import unfused
from pullback.functions.memory_formats import in_format_of
from pullback.graph.fused_node import records_steps
from pullback.graph.history import refuse_history
from pullback.graph.in_place import write_out
from pullback.modes.interception import dispatch_operation, interceptable, is_dispatching
from pullback.modes.switches import process
from pullback.native import silent
from pullback.tensor.arguments import as_shape
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape


@declare(found="torch")
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """Normalize the last dimensions to mean 0 and variance 1, then multiply by `weight` and add `bias`.

    >>> import pullback
    >>> pullback.layer_norm(pullback.tensor([[1.0, 3.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@declare(found="torch")
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `layer_norm`, with the means and the reciprocal standard deviations."""
    if isinstance(normalized_shape, int):
        raise wrong_type("layer_norm", "normalized_shape", 2, "tuple of ints", normalized_shape)
    shape = as_shape(normalized_shape)
    _check_normalized_shape(input, shape, weight, bias)
    require_parameter_dtypes(input._array, *[None if p is None else p._array for p in (weight, bias)])
    return _with_statistics(input, weight, *G.native_layer_norm(input, shape, weight, bias, eps))


def _with_statistics(
    input: Tensor, weight: Tensor | None, result: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The statistics in the dtype of a 16-bit input, unless the parameters are of float32; on a GPU they are float32."""
    array = input._array
    if (
        array.dtype.itemsize == 2
        and not isinstance(array, DeviceArray)
        and (weight is None or weight.dtype is input.dtype)
    ):
        return result, mean.to(input.dtype), rstd.to(input.dtype)
    return result, mean, rstd


@declare(found="torch")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root mean square of the last dimensions, then multiply by `weight`.

    `normalized_shape` is the shape of these dimensions, and of `weight`. y = x / sqrt(mean(x**2) + eps) * weight; `eps` is
    the dtype's smallest step from 1 unless given.

    >>> import pullback
    >>> pullback.nn.functional.rms_norm(pullback.tensor([3.0, 4.0]), (2,), eps=0.0)
    tensor([0.8485, 1.1314])
    """
    shape = as_shape(normalized_shape)
    if input._array.ndim < len(shape) and (weight is None or weight._array.shape == shape):
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {input._array.ndim}")
    _check_normalized_shape(input, shape, weight, None)
    if input.dtype.is_complex:
        return unfused.rms_norm_steps(input, shape, weight, eps)
    if process.changed and records_steps(input, weight):
        return unfused.rms_norm_steps(input, shape, weight, eps)
    if input._array.dtype.itemsize == 2:
        return G.rms_norm_rounded(input, shape, weight, eps)
    return G.rms_norm_fused(input, shape, weight, eps)


def _check_normalized_shape(input: Tensor, shape: Shape, weight: Tensor | None, bias: Tensor | None) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter._array.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter._array.shape)} and normalized_shape = {list(shape)}"
            )
    sizes = input._array.shape
    if sizes[max(0, len(sizes) - len(shape)) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got "
            f"input of size{list(sizes)}"
        )


@declare(found="torch")
def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Normalize each channel: in training by its own statistics, updating the running ones; else by these."""
    if not input._array.size:
        shown = _show_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
        return (_empty_batch_norm(input, weight, bias) if shown is NotImplemented else shown)[0]
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@declare(out_dtype="scalar_type", found="torch")
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, *, out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """As `batch_norm`, with the means and the reciprocal standard deviations used (empty outside of training)."""
    if out is not None:
        made = native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
        return write_out("native_batch_norm", out, made)
    shown = _show_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if shown is not NotImplemented:
        return tuple(shown)
    if input._array.ndim < 2:
        if input._array.ndim == 1 and not input._array.size:
            return _empty_batch_norm(input, weight, bias)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(1, input._array.ndim)}, "
            f"{max(0, input._array.ndim - 1)}], but got 1)"
        )
    refuse_history("native_batch_norm", running_mean=running_mean, running_var=running_var)
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training:
        if running_mean is None or running_var is None:
            name = "running_mean" if running_mean is None else "running_var"
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        result = G.batch_norm_evaluation(input, weight, bias, running_mean, running_var, eps)
        empty = G.slice_view(running_mean, 0, 0, 0, 1).detach()
        return in_format_of(input, result), empty, empty
    if is_float_or_complex(input._array.dtype):
        parameters = (weight, bias, running_mean, running_var)
        require_parameter_dtypes(input._array, *[None if p is None else p._array for p in parameters])
    result, mean, rstd, variance = G.batch_norm_training(input, weight, bias, eps)
    count = input._array.size // max(1, input._array.shape[1])
    if running_mean is not None:
        _blend(running_mean, mean, 1.0, momentum)
    if running_var is not None:
        _blend(running_var, variance, count / max(1, count - 1), momentum)
    return _with_statistics(input, weight, in_format_of(input, result), mean, rstd)


def _empty_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Of nothing nothing is left, whatever its shape; the parameters stay on the graph."""
    result: Any = G.clone(input)
    if weight is not None:
        result = result * weight[0]
    if bias is not None:
        result = result + bias[0]
    empty = G.clone(input).detach()
    return result, empty, empty


@interceptable
@silent
def _blend(running: Tensor, observed: Tensor, factor: float, momentum: float) -> None:
    """Move running statistics towards the observed ones; as in PyTorch this is not a recorded in-place operation."""
    running._array[...] = running._array * (1 - momentum) + observed._array * factor * momentum


def _show_native_batch_norm(*given: Any) -> Any:
    """What dispatch modes and tensors that override it make of the operation; NotImplemented if nobody takes it."""
    if process.changed and is_dispatching():
        return dispatch_operation(native_batch_norm, given)
    return NotImplemented


def _check_channels(input: Tensor, **vectors: Tensor | None) -> None:
    channels = input._array.shape[1]
    for name, vector in vectors.items():
        if vector is not None and vector._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {vector._array.size}")
        if vector is not None and vector._array.ndim != 1 and name.startswith("running"):
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {vector._array.ndim}: {name}")


@declare(found="torch")
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Normalize each channel of each sample: a batch norm of all of them side by side."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if running_mean is not None and running_var is not None and running_var._array.dtype != running_mean._array.dtype:
        expected, found = (scalar_type_name(r._array.dtype) for r in (running_mean, running_var))
        raise RuntimeError(f"expected scalar type {expected} but found {found}")
    sizes = input._array.shape
    batch, channels = sizes[:2]
    side_by_side = G.view(_contiguous(input), (1, batch * channels, *sizes[2:]))
    means, variances = (None if v is None else v.repeat(batch) for v in (running_mean, running_var))
    if use_input_stats and means is not None and variances is not None:  # running ones of any dtype are updated
        means, variances = means.to(input.dtype), variances.to(input.dtype)
    result = batch_norm(
        side_by_side, None if weight is None else weight.repeat(batch), None if bias is None else bias.repeat(batch),
        means, variances, use_input_stats, momentum, eps,
    )  # fmt: skip
    for running, repeated in ((running_mean, means), (running_var, variances)):
        if running is not None and repeated is not None and use_input_stats:
            running.detach().copy_(repeated.detach().reshape(batch, channels).mean(0))
    return G.view(result, sizes)


def _contiguous(input: Tensor) -> Tensor:
    return input if input._array.flags.c_contiguous else G.contiguous_copy(input)


def _check_groups(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int
) -> None:
    """Refuse sizes that are not those of the input."""
    if group <= 0 or C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input._array.shape)} and num_groups={group}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter._array.shape != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(parameter._array.shape)} and input of shape {list(input._array.shape)}"
            )
    if input._array.size != N * C * HxW:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.")


@declare(found="torch")
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `group_norm`, with the means and the reciprocal standard deviations, which are differentiable too."""
    _check_groups(input, weight, bias, N, C, HxW, group)
    result, mean, rstd = G.native_group_norm(input, weight, bias, N, C, HxW, group, eps)
    if input._requires_grad or process.changed:
        rows: Any = input.reshape(N, group, C // group * HxW)
        mean = G.mean(rows, (2,), False)
        deviation = rows - mean.unsqueeze(2)
        rstd = G.rsqrt(G.mean(deviation * deviation, (2,), False) + eps)
    return _with_statistics(input, weight, result, mean, rstd)


@declare(found="torch")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Normalize groups of channels of each sample."""
    sizes = input._array.shape
    if input._array.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input._array.ndim}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if sizes[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(sizes)} and num_groups={num_groups}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter._array.shape != (sizes[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(parameter._array.shape)} and input of shape {list(sizes)}"
            )
    result = G.native_group_norm(input, weight, bias, sizes[0], sizes[1], math.prod(sizes[2:]), num_groups, eps)[0]
    return in_format_of(input, result)
