"""Normalisation within a sample: layer, RMS, group, local response."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.nn import functional, init
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _as_shape(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LocalResponseNorm(Module):
    """Divide by the energy of neighbouring channels.

    The input is (N, C, *). y[c] = x[c] / (k + alpha / size * sum of x[d] ** 2 over the `size` channels d around c) **
    beta.

    >>> import pullback
    >>> pullback.nn.LocalResponseNorm(2)(pullback.ones(1, 3, 4)).shape
    pullback.Size([1, 3, 4])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Any:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of images under its old name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class LayerNorm(Module):
    """Zero mean and unit variance over the last dimensions, then a learned scale and shift.

    >>> LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    weight: Any
    bias: Any

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = Parameter(creation.empty(self.normalized_shape, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(creation.empty(self.normalized_shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scale to one and shift to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Zero mean and unit variance over groups of channels, then a learned scale and shift per channel.

    The input is (N, C, *), C = `num_channels`, in `num_groups` groups. y = (x - mean) / sqrt(variance + eps) * weight +
    bias, with mean and variance of each group of each example, and a weight and a bias for each channel.

    >>> import pullback
    >>> pullback.nn.GroupNorm(1, 2)(pullback.tensor([[1., 3.]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]
    weight: Any
    bias: Any

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"num_groups must be positive, but got {num_groups}")
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(creation.empty(num_channels, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(creation.empty(num_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scale to one and shift to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Unit root mean square over the last dimensions, then a learned scale.

    The last dimensions of the input are `normalized_shape`. y = x / sqrt(mean of x ** 2 + eps) * weight; `eps` None
    stands for the dtype's.

    >>> import pullback
    >>> pullback.nn.RMSNorm(2)(pullback.tensor([3., 3.])).detach()
    tensor([1., 1.])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    weight: Any

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        if elementwise_affine:
            self.weight = Parameter(creation.empty(self.normalized_shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Any:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
