"""Schedules of learning rates. PyTorch's `torch.optim.lr_scheduler`."""

from pullback.optim.lr_scheduler.chainable import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from pullback.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from pullback.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from pullback.optim.lr_scheduler.plateau import ReduceLROnPlateau
from pullback.optim.lr_scheduler.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler

_LRScheduler = LRScheduler

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
