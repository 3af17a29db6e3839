"""Messages from one rank to another."""

from __future__ import annotations

import os

import pytest

import pullback
from pullback import distributed as dist

RANK = int(os.environ.get("RANK", 0))


def check_a_tensor_is_sent_and_received() -> None:
    values = pullback.zeros(3)
    if RANK == 0:
        dist.send(pullback.arange(3.0), 1)
    else:
        assert dist.recv(values, 0) == 0
        assert values.tolist() == [0.0, 1.0, 2.0]


def check_a_tensor_from_anybody() -> None:
    values = pullback.zeros(2, 2).t()
    if RANK == 0:
        dist.send(pullback.arange(4.0).reshape(2, 2), 1, tag=7)
    else:
        assert dist.recv(values, tag=7) == 0
        assert values.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def check_both_ways_at_once() -> None:
    mine, theirs = pullback.full((2,), float(RANK)), pullback.zeros(2)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, 1 - RANK), dist.P2POp(dist.irecv, theirs, 1 - RANK)])
    for work in works:
        work.wait()
    assert theirs.tolist() == [1.0 - RANK] * 2


def check_no_rank_sends_to_itself() -> None:
    with pytest.raises(ValueError, match="destination rank should not be the same as the rank of the current process"):
        dist.send(pullback.ones(1), RANK)
    with pytest.raises(ValueError, match="Must specify global_rank or group_rank"):
        dist.send(pullback.ones(1))
