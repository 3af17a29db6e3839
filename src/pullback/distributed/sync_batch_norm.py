"""Batch normalisation over the batches of all ranks.

Every rank sends the count, mean and sum of squared deviations of its batch; from these follow the mean and variance of
all of it (Chan, Golub, LeVeque), without subtracting large numbers. Gradients pass through the one message.
"""

from __future__ import annotations

from typing import Any

import pullback
from pullback.distributed import functional
from pullback.distributed.process_group import ProcessGroup

__all__ = ["batch_norm_of_all_ranks"]


def batch_norm_of_all_ranks(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float,
    group: ProcessGroup,
) -> Any:  # fmt: skip
    """Normalise each channel (dim 1) by the mean and variance over the batches of all ranks of a group.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> x = pullback.tensor([[1.0], [3.0]])
    >>> batch_norm_of_all_ranks(x, None, None, None, None, 0.1, 0.0, dist.group.WORLD)
    tensor([[-1.],
            [ 1.]])
    >>> dist.destroy_process_group()
    """
    channels = input.shape[1]
    dims = [dim for dim in range(input.ndim) if dim != 1]
    shape = [1, channels, *([1] * (input.ndim - 2))]
    exact = input if input.dtype in (pullback.float32, pullback.float64) else input.float()
    count = input.numel() // max(channels, 1)
    own_mean = exact.sum(dims) / max(count, 1)
    own_square = ((exact - own_mean.view(shape)) ** 2).sum(dims)
    counts = pullback.full((channels,), float(count), dtype=exact.dtype)
    all_counts, means, squares = pullback.stack(
        functional.all_gather(pullback.stack([counts, own_mean, own_square]), group), dim=1
    ).unbind(0)
    total = all_counts.sum(0)
    if float(total.detach()[0]) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    mean = (all_counts * means).sum(0) / total
    square = (squares + all_counts * (means - mean) ** 2).sum(0)
    _update(running_mean, mean, momentum)
    _update(running_var, square / (total - 1), momentum)
    scale = (square / total + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    result = (exact - mean.view(shape)) * scale.view(shape)
    if bias is not None:
        result = result + bias.view(shape)
    return result.to(input.dtype)


def _update(running: Any, value: Any, momentum: float) -> None:
    if running is not None:
        with pullback.no_grad():
            running.mul_(1 - momentum).add_(value.detach().to(running.dtype), alpha=momentum)
