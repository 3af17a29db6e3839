"""What programs ask of this part of PyTorch's compiler: its settings."""

from pullback.pytorch._functorch import config

__all__ = ["config"]
