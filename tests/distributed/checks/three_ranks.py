"""What differs when the number of ranks is not a power of two, or groups overlap."""

from __future__ import annotations

import os

import pullback
from pullback import distributed as dist

RANK = int(os.environ.get("RANK", 0))


def check_all_ranks_get_the_same_bits() -> None:
    for dtype in (pullback.float32, pullback.bfloat16):
        pullback.manual_seed(RANK)
        values = pullback.randn(10_001).to(dtype)
        dist.all_reduce(values)
        every = [pullback.zeros_like(values) for _ in range(3)]
        dist.all_gather(every, values)
        assert pullback.equal(every[0], every[1])
        assert pullback.equal(every[0], every[2])


def check_overlapping_groups() -> None:
    low, high = dist.new_group([0, 1]), dist.new_group([1, 2])
    values = pullback.tensor([float(RANK)])
    if RANK <= 1:
        dist.all_reduce(values, group=low)
    if RANK >= 1:
        dist.all_reduce(values, group=high)
    assert values.tolist() == {0: [1.0], 1: [3.0], 2: [3.0]}[RANK]


def check_roots_are_numbered_among_all_ranks() -> None:
    high = dist.new_group([1, 2])
    values = pullback.tensor([float(RANK)])
    if RANK >= 1:
        dist.broadcast(values, src=2, group=high)
        assert values.tolist() == [2.0]
        assert dist.get_group_rank(high, 2) == 1
