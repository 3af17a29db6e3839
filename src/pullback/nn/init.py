"""Filling parameters with their first values, from the same random numbers as PyTorch."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.backend.random import Generator
from pullback.modes.switches import process
from pullback.modes.user_warnings import warn_user
from pullback.tensor.foreign_arguments import any_asked_whole, ask_about, is_foreign
from pullback.tensor.tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_UNIT_GAINS = {
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are scaled.

    >>> calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if nonlinearity in _UNIT_GAINS:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _told(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of which function modes and overriding classes are told, all of its arguments by name."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def filled(*args: Any, **kwargs: Any) -> Tensor:
        if process.changed or not (args and isinstance(args[0], Tensor)):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if any_asked_whole(bound.arguments["tensor"]) or is_foreign(bound.arguments["tensor"]):
                return ask_about(filled, **bound.arguments)
        return function(*args, **kwargs)

    return filled


def _fill_uniform(tensor: Any, a: float, b: float, generator: Generator | None) -> Tensor:
    with no_grad():
        tensor.uniform_(a, b, generator=generator)
    return tensor


def _fill_normal(tensor: Any, mean: float, std: float, generator: Generator | None) -> Tensor:
    with no_grad():
        tensor.normal_(mean, std, generator=generator)
    return tensor


@_told
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers from [a, b).

    In place, and the tensor is returned; no history is recorded.

    >>> import pullback
    >>> pullback.nn.init.uniform_(pullback.empty(3), 1.0, 1.0)
    tensor([1., 1., 1.])
    """
    return _fill_uniform(tensor, a, b, generator)


@_told
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.

    In place, and the tensor is returned; no history is recorded.

    >>> import pullback
    >>> pullback.nn.init.normal_(pullback.empty(2), mean=1.0, std=0.0)
    tensor([1., 1.])
    """
    return _fill_normal(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with normal numbers from [a, b]: others are drawn again.

    In place, and the tensor is returned; `mean` and `std` are those before the cut.

    >>> import pullback
    >>> bool(pullback.nn.init.trunc_normal_(pullback.empty(100)).abs().max() <= 2)
    True
    """

    def distribution(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warn_user(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    inside = distribution((b - mean) / std) - distribution((a - mean) / std)
    draw = _draw_normal if inside > 0.3 else _draw_by_density
    target: Any = tensor
    with no_grad():
        values, rejected = draw(target, mean, std, a, b, generator)
        while bool(rejected.any()):
            redrawn, still = draw(target, mean, std, a, b, generator)
            values = functions.where(rejected, redrawn, values)
            rejected = rejected & still
        target.copy_(values)
    return tensor


def _draw_normal(like: Any, mean: float, std: float, a: float, b: float, generator: Any) -> tuple[Any, Any]:
    """Normal numbers, and which lie outside of [a, b]: where most lie inside."""
    values = functions.normal_(creation.empty_like(like.detach()), mean, std, generator=generator)
    low, high = (like.new_full((), bound).item() for bound in (a, b))
    return values, (values < low) | (values > high)


def _draw_by_density(like: Any, mean: float, std: float, a: float, b: float, generator: Any) -> tuple[Any, Any]:
    """Uniform numbers from [a, b], and which to reject so that the others are normal: where few would lie inside."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    values = functions.uniform_(creation.empty_like(like.detach()), a, b, generator=generator)
    log_density = ((values - mean) / std) ** 2 * -0.5 - peak
    return values, functions.log(
        functions.uniform_(creation.empty_like(like.detach()), generator=generator)
    ) > log_density


def _fill(tensor: Any, value: float) -> Tensor:
    with no_grad():
        tensor.fill_(value)
    return tensor


@_told
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    In place, and the tensor is returned; no history is recorded.

    >>> import pullback
    >>> pullback.nn.init.constant_(pullback.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return _fill(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _fill(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    filled: Any = tensor
    with no_grad():
        filled.zero_()
    return tensor


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity, as far as its shape allows.

    In place, and the tensor is returned, which has two dimensions.

    >>> import pullback
    >>> pullback.nn.init.eye_(pullback.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    filled: Any = tensor
    with no_grad():
        filled.zero_()
        filled.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution's weight keep its input channels as they are.

    In place, for a weight of 3 to 5 dimensions: 1 at the middle of the kernel from channel i to channel i, 0 elsewhere; in
    each of `groups` groups.

    >>> import pullback
    >>> pullback.nn.init.dirac_(pullback.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.shape
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    filled: Any = tensor
    with no_grad():
        filled.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                filled[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs one output has, and how many outputs one input has."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    inputs, outputs = tensor.size(1), tensor.size(0)
    receptive_field = math.prod(tensor.shape[2:]) if tensor.dim() > 2 else 1
    return inputs * receptive_field, outputs * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers that keep the variance in both directions (Glorot and Bengio).

    In place, for two dimensions or more: fan_in is columns, fan_out rows, times the size of a kernel. From [-a, a] with
    a = gain * sqrt(6 / (fan_in + fan_out)).

    >>> import pullback
    >>> bool(pullback.nn.init.xavier_uniform_(pullback.empty(2, 4)).abs().max() <= 1)
    True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _fill_uniform(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers that keep the variance in both directions (Glorot and Bengio).

    In place, for two dimensions or more: fan_in is columns, fan_out rows, times the size of a kernel.
    std = gain * sqrt(2 / (fan_in + fan_out)).
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _fill_normal(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_told
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with uniform numbers that keep the variance through rectifiers (He and others).

    In place, for two dimensions or more. From [-b, b] with b = gain * sqrt(3 / fan), where `mode` says which fan
    ("fan_in" or "fan_out") and the gain is `calculate_gain(nonlinearity, a)`.

    >>> import pullback
    >>> bool(pullback.nn.init.kaiming_uniform_(pullback.empty(2, 6), nonlinearity="relu").abs().max() <= 1)
    True
    """
    if 0 in tensor.shape:
        warn_user("Initializing zero-element tensors is a no-op")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _fill_uniform(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with normal numbers that keep the variance through rectifiers (He and others).

    In place, for two dimensions or more. std = gain / sqrt(fan), where `mode` says which fan ("fan_in" or "fan_out") and the
    gain is `calculate_gain(nonlinearity, a)`.
    """
    if 0 in tensor.shape:
        warn_user("Initializing zero-element tensors is a no-op")
        return tensor
    return _fill_normal(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix, dimensions after the first taken together.

    In place: W @ W.T, or W.T @ W if there are more rows, is gain ** 2 times the identity.

    >>> import pullback
    >>> weight = pullback.nn.init.orthogonal_(pullback.empty(2, 3))
    >>> bool(pullback.allclose(weight @ weight.T, pullback.eye(2), atol=1e-6))
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    from pullback import linalg

    target: Any = tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flattened = target.new_empty((rows, columns))
        functions.normal_(flattened, 0, 1, generator=generator)
        if rows < columns:
            flattened = flattened.t()
        q, r = linalg.qr(flattened)
        # With the signs of the diagonal of r the distribution is uniform (Haar).
        q = q * r.diagonal().sign()
        if rows < columns:
            q = q.t()
        target.view_as(q).copy_(q)
        target.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers and zero a share of each column.

    In place, for two dimensions: of each column ceil(sparsity * rows) elements become 0.

    >>> import pullback
    >>> int((pullback.nn.init.sparse_(pullback.empty(4, 1), 0.5) == 0).sum())
    2
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    target: Any = tensor
    rows, columns = tensor.shape
    num_zeros = math.ceil(sparsity * rows)
    with no_grad():
        functions.normal_(target, 0, std, generator=generator)
        for column in range(columns):
            target[functions.randperm(rows)[:num_zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    old_name = function.__name__.removesuffix("_")

    def warn_and_call(*args: Any, **kwargs: Any) -> Tensor:
        warn_user(f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{function.__name__}`.", FutureWarning)
        return function(*args, **kwargs)

    warn_and_call.__name__ = old_name
    warn_and_call.__doc__ = f"Old name of `{function.__name__}`."
    return warn_and_call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
