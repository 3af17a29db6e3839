"""PyTorch's private name for the module of Tensor."""

from pullback.tensor.tensor import Tensor

__all__ = ["Tensor"]
