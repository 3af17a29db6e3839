"""PowerSGD: sends two thin matrices in place of a gradient matrix (Vogels, Karimireddy, Jaggi, 2019).

A gradient M of n rows and m columns is approximated by P Q' with r columns: P = M Q, made orthonormal after it was
averaged over ranks, then Q = M' P, averaged too. One step of a power iteration, begun with the Q of the last pass, finds
the largest directions over time; what is left out is added to the next gradient. A rank sends r (n + m) numbers, not n m.
"""

from __future__ import annotations

import math
from typing import Any

import pullback
from pullback.backend.random.generator import numpy_random_state
from pullback.distributed import collectives
from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks
from pullback.distributed.grad_bucket import GradBucket
from pullback.distributed.process_group import group_of
from pullback.pytorch.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD keeps from pass to pass: errors and directions per bucket.

    Before pass `start_powerSGD_iter`, and for gradients that would not become smaller by `min_compression_rate`, it
    averages as usual.
    """

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = numpy_random_state(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a pass when its last bucket comes."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times less is sent, and the numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def random_columns(self, shapes: list[tuple[int, int]], dtype: Any) -> list[Any]:
        """Columns to begin with, the same on all ranks and in PyTorch; the program's random numbers stay as they are."""
        with pullback.random.fork_rng():
            pullback.manual_seed(int(self.rng.randint(1_000_000_000)))
            return [pullback.randn(*shape, dtype=dtype) for shape in shapes]


def _orthonormal(matrix: Any, epsilon: float) -> None:
    """Make the columns orthonormal in place, by Gram and Schmidt."""
    for index in range(matrix.shape[1]):
        column = matrix[:, index : index + 1]
        size = column.norm()
        column.div_(size + epsilon if epsilon else size if float(size) > 0 else 1.0)
        if index + 1 < matrix.shape[1]:
            rest = matrix[:, index + 1 :]
            rest.sub_((column * rest).sum(0) * column)


def _mean(tensors: list[Any], group: Any) -> None:
    """Average several tensors over ranks, in one message."""
    collectives.all_reduce_coalesced(tensors, group=group)
    for tensor in tensors:
        tensor.div_(group_of(group).size())


def _begin(state: PowerSGDState, bucket: GradBucket) -> Any:
    """The bucket's flat gradient, with what the last pass left out."""
    buffer = bucket.buffer()
    if state.use_error_feedback and bucket.index() in state.error_dict:
        buffer.add_(state.error_dict[bucket.index()])
    return buffer


def _compress(matrices: list[Any], state: PowerSGDState, key: int) -> None:
    """Replace every matrix by the mean over ranks of its approximation."""
    rank = state.matrix_approximation_rank
    ranks = [min(rank, *matrix.shape) for matrix in matrices]
    known = state.q_memory_dict.get(key) if state.warm_start else None
    if known is None or [q.shape[0] for q in known] != [matrix.shape[1] for matrix in matrices]:
        shapes = [(matrix.shape[1], columns) for matrix, columns in zip(matrices, ranks, strict=True)]
        known = state.random_columns(shapes, matrices[0].dtype)
    for q in known:
        _orthonormal(q, state.orthogonalization_epsilon)
    ps = [matrix @ q for matrix, q in zip(matrices, known, strict=True)]
    _mean(ps, state.process_group)
    for p in ps:
        _orthonormal(p, state.orthogonalization_epsilon)
    qs = [matrix.t() @ p for matrix, p in zip(matrices, ps, strict=True)]
    _mean(qs, state.process_group)
    state.q_memory_dict[key] = qs
    state.total_numel_before_compression += sum(matrix.numel() for matrix in matrices)
    state.total_numel_after_compression += sum(each.numel() for each in [*ps, *qs])
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        matrix.copy_(p @ q.t())


def _finish(state: PowerSGDState, bucket: GradBucket, before: Any) -> Future[Any]:
    buffer = bucket.buffer()
    if state.use_error_feedback:
        state.error_dict[bucket.index()] = before - buffer
    state.maybe_increase_iter(bucket)
    done: Future[Any] = Future()
    done.set_result(buffer)
    return done


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average the gradients of a bucket, matrices among them by PowerSGD.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> module = pullback.nn.parallel.DistributedDataParallel(pullback.nn.Linear(8, 8, bias=False))
    >>> module.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook)
    >>> module(pullback.ones(1, 8)).sum().backward()
    >>> dist.destroy_process_group()
    """
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer = _begin(state, bucket)
    before = buffer.clone()
    matrices: list[Any] = []
    others: list[Any] = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0] if gradient.ndim else 1, -1)
        (matrices if _is_worth_it(matrix, state) else others).append(matrix)
    if others:
        _mean(others, state.process_group)
    if matrices:
        _compress(matrices, state, bucket.index())
    return _finish(state, bucket, before)


def _is_worth_it(matrix: Any, state: PowerSGDState) -> bool:
    rows, columns = matrix.shape
    return (rows + columns) * state.matrix_approximation_rank * state.min_compression_rate < rows * columns


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """As `powerSGD_hook`, with the whole bucket as one square matrix: faster, and less exact."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer = _begin(state, bucket)
    side = math.isqrt(buffer.numel() - 1) + 1
    square = pullback.zeros(side * side, dtype=buffer.dtype)
    square[: buffer.numel()] = buffer
    before = buffer.clone()
    _compress([square.view(side, side)], state, bucket.index())
    buffer.copy_(square[: buffer.numel()])
    return _finish(state, bucket, before)
