"""AdamW, where PyTorch has it."""

from pullback.optim.adam import AdamW

__all__ = ["AdamW"]
