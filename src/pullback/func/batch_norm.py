"""Batch norm under vmap: its running statistics cannot be written to for each example."""

from __future__ import annotations

from typing import Any


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make every batch norm module in `root` use the statistics of its batch alone, in place."""
    kind = _batch_norm_class()
    module: Any
    for module in root.modules():
        if isinstance(module, kind):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _batch_norm_class() -> Any:
    from pullback.nn.modules import batchnorm  # lazy: func is beside nn

    return batchnorm._BatchNorm
