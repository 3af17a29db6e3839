"""Collectives that gradients pass through: PyTorch's `torch.distributed.nn`."""

from pullback.distributed.nn import functional as functional
from pullback.distributed.nn.functional import *
