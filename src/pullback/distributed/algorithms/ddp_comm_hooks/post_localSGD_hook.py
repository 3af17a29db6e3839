"""Averaging gradients over all ranks at first, later over those of one machine or not at all.

A `PeriodicModelAverager` then averages the parameters of all ranks now and then.
"""

from __future__ import annotations

from typing import Any

from pullback.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from pullback.distributed.grad_bucket import GradBucket
from pullback.distributed.subgroups import new_subgroups
from pullback.pytorch.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """Which ranks average gradients, and from which pass on only those of the subgroup do."""

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a pass with its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:
    """Average over all ranks before `start_localSGD_iter` passes, then over the subgroup or not at all."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        future: Future[Any] = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
