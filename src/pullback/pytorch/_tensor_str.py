"""PyTorch's private name for the module that prints tensors."""

from pullback.tensor.formatting import get_printoptions, printoptions, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
