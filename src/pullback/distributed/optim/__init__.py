"""Optimizers of several processes."""

from pullback.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from pullback.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
