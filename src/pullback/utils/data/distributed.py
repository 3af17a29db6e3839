"""The sampler that divides a dataset among the ranks of a process group, or among as many replicas as are given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any, cast

import pullback
from pullback.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Visits every `num_replicas`-th index of an order that all replicas share, starting at `rank`.

    The order is shuffled from `seed + epoch`: call `set_epoch` before each pass, or every pass repeats the first.
    Indices are repeated from the start to fill the last round, or with `drop_last` the round is left out.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from pullback.distributed.process_group import get_rank, get_world_size  # lazy: above this layer

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        total = len(cast(Sized, dataset))
        self.num_samples = total // num_replicas if drop_last else math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        order = self._shared_order()
        if len(order) < self.total_size:
            order = (order * math.ceil(self.total_size / len(order)))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def _shared_order(self) -> list[int]:
        total = len(cast(Sized, self.dataset))
        if not self.shuffle:
            return list(range(total))
        generator = pullback.Generator()
        generator.manual_seed(self.seed + self.epoch)
        return cast("list[int]", pullback.randperm(total, generator=generator).tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass use another order, the same on all replicas."""
        self.epoch = epoch
