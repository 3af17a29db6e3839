"""Convolutions and transposed convolutions over sequences, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback import creation
from pullback.nn import functional, init
from pullback.nn.modules.lazy import LazyModuleMixin
from pullback.nn.modules.module import Module
from pullback.nn.modules.repeat import repeated, reversed_twice
from pullback.nn.parameter import Parameter, UninitializedParameter
from pullback.tensor.tensor import Tensor

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = "zeros", "reflect", "replicate", "circular"


def _check_arguments(
    in_channels: int, out_channels: int, stride: tuple[int, ...], padding: Any, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {{'zeros', 'circular', 'reflect', 'replicate'}}, but got {padding_mode=}"
        )


def _explicit_padding(padding: Any, kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> Any:
    """The padding as `F.pad` takes it."""
    if not isinstance(padding, str):
        return reversed_twice(padding)
    explicit = [0, 0] * len(kernel_size)
    if padding == "same":
        for i, (step, size) in enumerate(zip(reversed(dilation), reversed(kernel_size), strict=True)):
            total = step * (size - 1)
            explicit[2 * i] = total // 2
            explicit[2 * i + 1] = total - total // 2
    return explicit


class _ConvNd(Module):
    """What all convolutions have in common; `dims` counts the spatial dimensions."""

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip
    weight: Any
    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...], padding: Any,
        dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...], groups: int, bias: bool,
        padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_arguments(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _explicit_padding(padding, kernel_size, dilation)
        self.weight = Parameter(creation.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(creation.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias from uniform distributions of width 1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        if self.padding != zeros:
            parts.append(f"padding={self.padding}")
        if self.dilation != ones:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != zeros:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """Convolutions that are not transposed."""

    dims: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        dims = self.dims
        super().__init__(
            in_channels, out_channels, repeated(kernel_size, dims), repeated(stride, dims),
            padding if isinstance(padding, str) else repeated(padding, dims), repeated(dilation, dims), False,
            (0,) * dims, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
        convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[self.dims - 1]
        if self.padding_mode == "zeros":
            return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return convolve(padded, weight, bias, self.stride, (0,) * self.dims, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """A convolution over sequences.

    (N, in_channels, L) or (in_channels, L) becomes (N, out_channels, L_out), L_out = floor((L + 2 * padding - dilation
    * (kernel_size - 1) - 1) / stride) + 1. `weight` is (out_channels, in_channels / groups, kernel_size), `bias`
    (out_channels,).

    >>> import pullback
    >>> pullback.nn.Conv1d(2, 4, 3, padding=1)(pullback.ones(1, 2, 8)).shape
    pullback.Size([1, 4, 8])
    """

    dims = 1


class Conv2d(_Conv):
    """A convolution over images.

    >>> Conv2d(3, 8, 3, padding=1)
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    dims = 2


class Conv3d(_Conv):
    """A convolution over volumes.

    (N, in_channels, D, H, W) becomes (N, out_channels, D_out, H_out, W_out), D_out = floor((D + 2 * padding - dilation
    * (kernel_size - 1) - 1) / stride) + 1, and the others likewise.

    >>> import pullback
    >>> pullback.nn.Conv3d(2, 4, 3, stride=2)(pullback.ones(1, 2, 7, 7, 7)).shape
    pullback.Size([1, 4, 3, 3, 3])
    """

    dims = 3


class _ConvTransposeNd(_ConvNd):
    """Transposed convolutions."""

    dims: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        dims = self.dims
        super().__init__(
            in_channels, out_channels, repeated(kernel_size, dims), repeated(stride, dims), repeated(padding, dims),
            repeated(dilation, dims), True, repeated(output_padding, dims), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """The padding that makes the output as large as asked for."""
        if output_size is None:
            return self.output_padding
        dims = self.dims
        batched = input.dim() == dims + 2
        sizes = list(output_size)
        if len(sizes) == dims + 1 + batched:
            sizes = sizes[1 + batched :]
        if len(sizes) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {dims + 1 + batched} "
                f"elements (got {len(sizes)})"
            )
        smallest = [
            (input.shape[1 + batched + d] - 1) * self.stride[d] - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(dims)
        ]  # fmt: skip
        largest = [low + step - 1 for low, step in zip(smallest, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(smallest, sizes, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {smallest} to {largest} (for an input of "
                f"{input.shape[1 + batched :]})"
            )
        return tuple(size - low for size, low in zip(sizes, smallest, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Any:
        convolve = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)[
            self.dims - 1
        ]
        output_padding = self._output_padding(input, output_size)
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over sequences.

    (N, in_channels, L) becomes (N, out_channels, L_out), L_out = (L - 1) * stride - 2 * padding + dilation *
    (kernel_size - 1) + output_padding + 1. `weight` is (in_channels, out_channels / groups, kernel_size).

    >>> import pullback
    >>> pullback.nn.ConvTranspose1d(2, 4, 3, stride=2)(pullback.ones(1, 2, 8)).shape
    pullback.Size([1, 4, 17])
    """

    dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over images.

    (N, in_channels, H, W) becomes (N, out_channels, H_out, W_out), H_out = (H - 1) * stride - 2 * padding + dilation *
    (kernel_size - 1) + output_padding + 1. `weight` is (in_channels, out_channels / groups, K_h, K_w).

    >>> import pullback
    >>> pullback.nn.ConvTranspose2d(8, 4, 2, stride=2)(pullback.ones(1, 8, 5, 5)).shape
    pullback.Size([1, 4, 10, 10])
    """

    dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over volumes.

    (N, in_channels, D, H, W) becomes (N, out_channels, D_out, H_out, W_out), with sizes as those of `ConvTranspose2d`.

    >>> import pullback
    >>> pullback.nn.ConvTranspose3d(8, 4, 2, stride=2)(pullback.ones(1, 8, 3, 3, 3)).shape
    pullback.Size([1, 4, 6, 6, 6])
    """

    dims = 3


_AFTER_BIAS = ["padding_mode", "device", "dtype"]


class _LazyConvXdMixin(LazyModuleMixin):
    """Finds `in_channels` on the first call."""

    dims: int
    weight: Any
    bias: Any
    in_channels: int
    out_channels: int

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        options: dict[str, Any] = {"device": kwargs.get("device"), "dtype": kwargs.get("dtype")}
        before_bias = [
            "stride",
            "padding",
            "output_padding" if "Transpose" in type(self).__name__ else "dilation",
            "groups",
        ]
        kwargs.update(zip([*before_bias, "bias", *_AFTER_BIAS], args, strict=False))
        with_bias = kwargs.pop("bias", True)
        super().__init__(0, 0, kernel_size, bias=False, **kwargs)
        self.weight = UninitializedParameter(**options)
        self.out_channels = out_channels
        if with_bias:
            self.bias = UninitializedParameter(**options)

    def reset_parameters(self) -> None:
        """Draw the parameters, once they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]  # the convolution's

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shape and values."""
        if not self.has_uninitialized_params():
            return
        module: Any = self
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self.dims - 1]
        if self.in_channels % module.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(module._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A Conv1d that finds `in_channels` on its first call.

    The arguments are those of Conv1d without the first; after that call it is a Conv1d.

    >>> import pullback
    >>> conv = pullback.nn.LazyConv1d(4, 3)
    >>> _ = conv(pullback.ones(1, 2, 5))
    >>> conv
    Conv1d(2, 4, kernel_size=(3,), stride=(1,))
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A Conv2d that finds `in_channels` on its first call.

    `in_channels` is that of the first input, after which it is a `Conv2d`.

    >>> import pullback
    >>> pullback.nn.LazyConv2d(4, 3)(pullback.ones(1, 2, 8, 8)).shape
    pullback.Size([1, 4, 6, 6])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A Conv3d that finds `in_channels` on its first call."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A ConvTranspose1d that finds `in_channels` on its first call."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A ConvTranspose2d that finds `in_channels` on its first call."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A ConvTranspose3d that finds `in_channels` on its first call."""

    cls_to_become = ConvTranspose3d
