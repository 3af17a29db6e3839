"""Taking images apart into blocks, and putting them together."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Add sliding blocks up to an image.

    (N, C * kernel positions, L) becomes (N, C, *output_size): windows as `Unfold` takes them, added where they overlap.

    >>> import pullback
    >>> pullback.nn.Fold((3, 3), 2)(pullback.ones(1, 4, 4))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Any:
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Take sliding blocks out of an image.

    (N, C, *sizes) becomes (N, C * kernel positions, L), a column for each of the L windows.

    >>> import pullback
    >>> pullback.nn.Unfold(2)(pullback.ones(1, 3, 4, 4)).shape
    pullback.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Any:
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
