"""loss_parallel: a loss of logits that are divided among ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.distributed.tensor.operations import implicit_replication

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Let `cross_entropy` take logits that are divided along the classes, and labels that every rank has.

    The logits come together on every rank while it runs, as for all operations on DTensors that need wholes.
    """
    with implicit_replication():
        yield
