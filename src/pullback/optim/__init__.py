"""Optimizers and their schedules. PyTorch's `torch.optim`."""

from pullback.optim.adam import Adam, AdamW
from pullback.optim.optimizer import Optimizer
from pullback.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
