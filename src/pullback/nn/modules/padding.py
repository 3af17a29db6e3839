"""Padding as modules."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.nn.modules.repeat import repeated
from pullback.tensor.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """`dims` spatial dimensions, padded on both sides as `mode` says."""

    dims: int
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Any:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Any:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continue sequences from their other end.

    `padding` is a number, or (left, right), not larger than the size.

    >>> import pullback
    >>> pullback.nn.CircularPad1d(1)(pullback.tensor([[1., 2., 3.]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    dims = 1


class CircularPad2d(_CircularPadNd):
    """Continue images from their other side.

    `padding` is a number, or (left, right, top, bottom), not larger than the sizes.

    >>> import pullback
    >>> pullback.nn.CircularPad2d(1)(pullback.ones(1, 3, 3)).shape
    pullback.Size([1, 5, 5])
    """

    dims = 2


class CircularPad3d(_CircularPadNd):
    """Continue volumes from their other side.

    `padding` is a number or (left, right, top, bottom, front, back); (N, C, D, H, W) or (C, D, H, W) grows by them.

    >>> import pullback
    >>> pullback.nn.CircularPad3d((1, 0, 0, 0, 0, 0))(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[2., 1., 2.]]]])
    """

    dims = 3


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Any:
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Surround sequences with a value.

    `padding` is a number, or (left, right); negative ones cut.

    >>> import pullback
    >>> pullback.nn.ConstantPad1d(1, 5.0)(pullback.tensor([[1., 2.]]))
    tensor([[5., 1., 2., 5.]])
    """

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Surround images with a value.

    `padding` is a number, or (left, right, top, bottom); negative ones cut.

    >>> import pullback
    >>> pullback.nn.ConstantPad2d(1, 5.0)(pullback.zeros(1, 1))
    tensor([[5., 5., 5.],
            [5., 0., 5.],
            [5., 5., 5.]])
    """

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Surround volumes with a value.

    `padding` is a number or (left, right, top, bottom, front, back); (N, C, D, H, W) or (C, D, H, W) grows by them.

    >>> import pullback
    >>> pullback.nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 9.0)(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[9., 1., 2.]]]])
    """

    dims = 3


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirror sequences at their ends.

    `padding` is a number, or (left, right), smaller than the size. (N, C, L) or (C, L).

    >>> import pullback
    >>> pullback.nn.ReflectionPad1d(1)(pullback.tensor([[1., 2., 3.]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirror images at their edges.

    `padding` is a number, or (left, right, top, bottom), smaller than the sizes. (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.ReflectionPad2d(1)(pullback.ones(1, 3, 3)).shape
    pullback.Size([1, 5, 5])
    """

    dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirror volumes at their faces.

    `padding` is a number or (left, right, top, bottom, front, back), smaller than the sizes; the face is not repeated.

    >>> import pullback
    >>> pullback.nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[2., 1., 2.]]]])
    """

    dims = 3


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeat the ends of sequences.

    `padding` is a number, or (left, right). (N, C, L) or (C, L).

    >>> import pullback
    >>> pullback.nn.ReplicationPad1d(1)(pullback.tensor([[1., 2., 3.]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeat the edges of images.

    `padding` is a number, or (left, right, top, bottom). (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.ReplicationPad2d(1)(pullback.ones(1, 3, 3)).shape
    pullback.Size([1, 5, 5])
    """

    dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeat the faces of volumes.

    `padding` is a number or (left, right, top, bottom, front, back); (N, C, D, H, W) or (C, D, H, W) grows by them.

    >>> import pullback
    >>> pullback.nn.ReplicationPad3d((1, 0, 0, 0, 0, 0))(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2.]]]])
    """

    dims = 3


class ZeroPad1d(ConstantPad1d):
    """Surround sequences with zeros.

    `padding` is a number, or (left, right); negative ones cut.

    >>> import pullback
    >>> pullback.nn.ZeroPad1d((0, 1))(pullback.tensor([[1., 2.]]))
    tensor([[1., 2., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Surround images with zeros.

    `padding` is a number, or (left, right, top, bottom); negative ones cut.

    >>> import pullback
    >>> pullback.nn.ZeroPad2d(1)(pullback.ones(1, 3, 3)).shape
    pullback.Size([1, 5, 5])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Surround volumes with zeros.

    `padding` is a number or (left, right, top, bottom, front, back); (N, C, D, H, W) or (C, D, H, W) grows by them.

    >>> import pullback
    >>> pullback.nn.ZeroPad3d((1, 0, 0, 0, 0, 0))(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
