"""Layers divided among ranks: PyTorch's `torch.distributed.tensor.parallel`."""

from pullback.distributed.tensor.parallel.loss import loss_parallel
from pullback.distributed.tensor.parallel.parallelize_module import parallelize_module
from pullback.distributed.tensor.parallel.prepare_module import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
)
from pullback.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
