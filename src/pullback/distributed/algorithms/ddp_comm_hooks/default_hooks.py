"""Averaging gradients as they are, or as 16-bit floats, which halves what is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback
from pullback.distributed import collectives
from pullback.distributed.grad_bucket import GradBucket
from pullback.distributed.process_group import group_of
from pullback.pytorch.futures import Future

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Any]]


def _averaged(group: Any, tensor: Any) -> Future[Any]:
    """A future of the mean over ranks; every rank divides first, so that short floats do not overflow."""
    tensor.div_(group_of(group).size())
    work = collectives.all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.wait()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average the gradients as they are: what is done without a hook.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> module = pullback.nn.parallel.DistributedDataParallel(pullback.nn.Linear(1, 1, bias=False))
    >>> module.register_comm_hook(None, allreduce_hook)
    >>> module(pullback.tensor([[3.0]])).sum().backward()
    >>> module.module.weight.grad
    tensor([[3.]])
    >>> dist.destroy_process_group()
    """
    return _averaged(process_group, bucket.buffer())


def _compress(process_group: Any, bucket: GradBucket, dtype: Any) -> Future[Any]:
    buffer = bucket.buffer()

    def restore(future: Future[Any]) -> Any:
        return buffer.copy_(future.wait())

    return _averaged(process_group, buffer.to(dtype, copy=True)).then(restore)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Send gradients as float16."""
    return _compress(process_group, bucket, pullback.float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Send gradients as bfloat16."""
    return _compress(process_group, bucket, pullback.bfloat16)


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future[Any]:
        original = bucket.buffer()
        bucket.set_buffer(original.to(dtype))
        return hook(state, bucket).then(lambda future: original.copy_(future.wait()))

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands `hook` gradients in float16."""
    return _wrapped(hook, pullback.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands `hook` gradients in bfloat16."""
    return _wrapped(hook, pullback.bfloat16)
