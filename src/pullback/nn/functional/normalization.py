"""Normalizations, with the argument order of torch.nn.functional."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalize each channel over the batch; in training by its own statistics, and update the running ones.

    `input` is (N, C, *); the running statistics, `weight` and `bias` are (C,) or None. y = (x - mean) / sqrt(var +
    eps) * weight + bias; running = (1 - momentum) * running + momentum * of this batch, with the variance divided by
    n - 1.
    """
    if eps <= 0 and (training or eps < 0):
        bound = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {bound}, but got {eps}")
    if training and input._array.ndim >= 2:
        _check_count(input, input._array.size // max(1, input._array.shape[1]))
    return functions.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_count(input: Tensor, count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalize each channel of each sample.

    `input` is (N, C, *), and the result has its shape; `weight` and `bias` are (C,). With `use_input_stats` the mean
    and the variance (not corrected) are those of each channel of each sample, else `running_mean` and `running_var`,
    (C,). y = (input - mean) / sqrt(var + eps) * weight + bias.

    >>> import pullback
    >>> pullback.nn.functional.instance_norm(pullback.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input._array.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return functions.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize the last dimensions to mean 0 and variance 1.

    `normalized_shape` are the last sizes of `input`, and the shape of `weight` and `bias`, which may be None. y = (x
    - mean) / sqrt(var + eps) * weight + bias.

    >>> import pullback
    >>> pullback.nn.functional.layer_norm(pullback.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    return functions.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide the last dimensions by their root mean square.

    `normalized_shape` are the last sizes of `input`. y = input / sqrt(mean of input ** 2 + eps) * weight.

    >>> import pullback
    >>> pullback.nn.functional.rms_norm(pullback.tensor([3., 3.]), (2,))
    tensor([1., 1.])
    """
    return functions.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels of each sample.

    `input` is (N, C, *) with C a multiple of `num_groups`; `weight` and `bias` are (C,) or None. y = (x - mean) /
    sqrt(var + eps) * weight + bias, with mean and variance of each sample's group of channels.
    """
    sizes = input._array.shape
    if len(sizes) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(sizes)}")
    if num_groups > 0 and sizes[0] * sizes[1] // num_groups * math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(sizes)}")
    return functions.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide each element by a power of the mean square of the neighbouring channels.

    `input` is (N, C, *). y[c] = x[c] / (k + alpha / size * sum of x[d] ** 2 over the `size` channels d around c) **
    beta.

    >>> import pullback
    >>> pullback.nn.functional.local_response_norm(pullback.ones(1, 3, 4), 2).shape
    pullback.Size([1, 3, 4])
    """
    sizes = tuple(input._array.shape)
    if len(sizes) < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {len(sizes)} dimensions)"
        )
    if input._array.size == 0:
        return input
    square = functions.mul(input, input)
    around = (size // 2, (size - 1) // 2)
    if len(sizes) == 3:
        padded = functions.constant_pad_nd(functions.unsqueeze(square, 1), (0, 0, *around), 0)
        mean = functions.squeeze(functions.avg_pool2d(padded, (size, 1), 1), 1)
    else:
        planes = functions.reshape(square, (sizes[0], 1, sizes[1], sizes[2], math.prod(sizes[3:])))
        padded = functions.constant_pad_nd(planes, (0, 0, 0, 0, *around), 0)
        mean = functions.reshape(functions.squeeze(functions.avg_pool3d(padded, (size, 1, 1), 1), 1), sizes)
    divisor = functions.pow(functions.add(functions.mul(mean, alpha), k), beta)
    return functions.div(input, divisor)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    """Divide by the norm along `dim`, but by no less than `eps`.

    The result has the shape of `input`. y = x / max(norm of order p of x along dim, eps), with p 2 and dim 1 unless
    given.
    """
    norm = functions.norm(input, p, dim, keepdim=True)
    denominator = functions.expand_as(functions.clamp_min(norm, eps), input)
    return functions.div(input, denominator) if out is None else functions.div(input, denominator, out=out)
