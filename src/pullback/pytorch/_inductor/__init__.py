"""What programs ask of this part of PyTorch's compiler: its settings."""

from pullback.pytorch._inductor import config

__all__ = ["config"]
