"""Pooling over sequences, images and volumes."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.nn.modules.repeat import repeated
from pullback.tensor.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def _options(self) -> dict[str, Any]:
        return {"ceil_mode": self.ceil_mode, "return_indices": self.return_indices}


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of sequences.

    (N, C, L) or (C, L) becomes (N, C, L_out), L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) /
    stride) + 1; `stride` is the kernel's size unless given, and `ceil_mode` rounds up. With `return_indices` the places
    of the maxima come too.

    >>> import pullback
    >>> pullback.nn.MaxPool1d(2)(pullback.tensor([[1., 3., 7., 5.]]))
    tensor([[3., 7.]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options()
        )


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of images.

    The input is (N, C, H, W), or (C, H, W), and the result (N, C, H', W') with H' = (H + 2 * padding - dilation *
    (kernel_size - 1) - 1) / stride + 1, rounded down, or up with `ceil_mode`. `stride` is `kernel_size` if not given;
    `return_indices` also gives the places of the maxima.

    >>> import pullback
    >>> MaxPool2d(2)(pullback.ones(1, 3, 8, 8)).shape
    pullback.Size([1, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options()
        )


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of volumes.

    (N, C, D, H, W) or (C, D, H, W) becomes (N, C, D_out, H_out, W_out), with sizes as those of `MaxPool1d`.

    >>> import pullback
    >>> pullback.nn.MaxPool3d(2)(pullback.ones(1, 3, 4, 8, 8)).shape
    pullback.Size([1, 3, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options()
        )


class _MaxUnpoolNd(Module):
    dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.dims)
        self.stride = repeated(stride if stride is not None else kernel_size, self.dims)
        self.padding = repeated(padding, self.dims)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Put maxima of sequences back where MaxPool1d took them.

    The input and `indices` are what `MaxPool1d` with `return_indices` gave; all other places are zero. `output_size`
    chooses among the sizes that pool to the same one.

    >>> import pullback
    >>> pool, unpool = pullback.nn.MaxPool1d(2, return_indices=True), pullback.nn.MaxUnpool1d(2)
    >>> unpool(*pool(pullback.tensor([[1., 3., 7., 5.]])))
    tensor([[0., 3., 7., 0.]])
    """

    dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        return functional.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Put maxima of images back where MaxPool2d took them.

    The input and `indices` are what `MaxPool2d` with `return_indices` gave; all other places are zero. `output_size`
    chooses among the sizes that pool to the same one.

    >>> import pullback
    >>> pool, unpool = pullback.nn.MaxPool2d(2, return_indices=True), pullback.nn.MaxUnpool2d(2)
    >>> unpool(*pool(pullback.arange(4.).reshape(1, 2, 2)))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        return functional.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Put maxima of volumes back where MaxPool3d took them."""

    dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        return functional.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of sequences.

    (N, C, L) or (C, L) becomes (N, C, L_out), L_out = floor((L + 2 * padding - kernel_size) / stride) + 1; `stride` is
    the kernel's size unless given, and `ceil_mode` rounds up. Padded zeros count as elements unless `count_include_pad`
    is False.

    >>> import pullback
    >>> pullback.nn.AvgPool1d(2)(pullback.tensor([[1., 3., 5., 7.]]))
    tensor([[2., 6.]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = repeated(kernel_size, 1)
        self.stride = repeated(stride if stride is not None else kernel_size, 1)
        self.padding = repeated(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Any:
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of images.

    (N, C, H, W) or (C, H, W) becomes (N, C, H_out, W_out), H_out = floor((H + 2 * padding - kernel_size) / stride) + 1;
    `stride` is the kernel's size unless given, and `ceil_mode` rounds up. The sum of a window is divided by its size,
    or by `divisor_override`.

    >>> import pullback
    >>> pullback.nn.AvgPool2d(2)(pullback.arange(16.).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Any:
        return functional.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool3d(AvgPool2d):
    """The mean of each window of volumes.

    (N, C, D, H, W) or (C, D, H, W) becomes (N, C, D_out, H_out, W_out), with sizes as those of `AvgPool2d`.

    >>> import pullback
    >>> pullback.nn.AvgPool3d(2)(pullback.ones(1, 3, 4, 8, 8)).shape
    pullback.Size([1, 3, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class _FractionalMaxPool(Module):
    dims: int

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = repeated(output_size, self.dims) if output_size is not None else None
        self.output_ratio = repeated(output_ratio, self.dims) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = functional.fractional_max_pool2d if self.dims == 2 else functional.fractional_max_pool3d
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of randomly placed windows of images.

    (N, C, H, W) or (C, H, W) becomes (N, C, *output_size); give `output_size`, or `output_ratio` as the part of each
    size that is left, between 0 and 1. The steps between windows are drawn anew in every call.

    >>> import pullback
    >>> pullback.nn.FractionalMaxPool2d(2, output_ratio=0.5)(pullback.ones(1, 8, 8)).shape
    pullback.Size([1, 4, 4])
    """

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of randomly placed windows of volumes."""

    dims = 3


class _LPPoolNd(Module):
    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of sequences.

    (N, C, L) or (C, L) becomes (N, C, L_out), L_out = floor((L - kernel_size) / stride) + 1. y = (sum of x **
    norm_type) ** (1 / norm_type).

    >>> import pullback
    >>> pullback.nn.LPPool1d(2, 2)(pullback.tensor([[3., 4., 6., 8.]]))
    tensor([[ 5., 10.]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of images.

    (N, C, H, W) or (C, H, W) becomes (N, C, H_out, W_out), H_out = floor((H - kernel_size) / stride) + 1. y = (sum of x
    ** norm_type) ** (1 / norm_type).

    >>> import pullback
    >>> pullback.nn.LPPool2d(1, 2)(pullback.ones(1, 4, 4))
    tensor([[[4., 4.],
             [4., 4.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of volumes."""

    def forward(self, input: Tensor) -> Any:
        return functional.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling of sequences to a given size.

    (N, C, L) or (C, L) becomes (N, C, output_size); with `return_indices` the places of the maxima come too. y[i] = max
    of x[j] for floor(i * L / output_size) <= j < ceil((i + 1) * L / output_size).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool1d(2)(pullback.tensor([[1., 2., 3., 4.]]))
    tensor([[2., 4.]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling of images to a given size.

    (N, C, H, W) or (C, H, W) becomes (N, C, *output_size); `output_size` is a number or a pair, and None keeps a size.
    With `return_indices` the places of the maxima come too.

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool2d((2, None))(pullback.ones(3, 8, 5)).shape
    pullback.Size([3, 2, 5])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling of volumes to a given size.

    (N, C, D, H, W) or (C, D, H, W) becomes (N, C, *output_size); `output_size` is a number or three, and None keeps a
    size.

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool3d(2)(pullback.ones(3, 4, 8, 8)).shape
    pullback.Size([3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling of sequences to a given size.

    (N, C, L) or (C, L) becomes (N, C, output_size). y[i] = mean of x[j] for floor(i * L / output_size) <= j < ceil((i +
    1) * L / output_size).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool1d(2)(pullback.tensor([[1., 2., 3., 4.]]))
    tensor([[1.5000, 3.5000]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling of images to a given size.

    (N, C, H, W) or (C, H, W) becomes (N, C, *output_size); `output_size` is a number or a pair, and None keeps a size.
    Each result is the mean of a window that covers its share of the image.

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool2d(1)(pullback.ones(2, 3, 8, 8)).shape
    pullback.Size([2, 3, 1, 1])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling of volumes to a given size.

    (N, C, D, H, W) or (C, D, H, W) becomes (N, C, *output_size); `output_size` is a number or three, and None keeps a
    size.

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool3d(1)(pullback.ones(2, 3, 4, 8, 8)).shape
    pullback.Size([2, 3, 1, 1, 1])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.adaptive_avg_pool3d(input, self.output_size)
