"""Python objects between ranks."""

from __future__ import annotations

import os
from typing import Any

import pullback
from pullback import distributed as dist

RANK = int(os.environ.get("RANK", 0))


def check_objects_of_all_ranks() -> None:
    found: list[Any] = [None, None]
    dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK, "tensor": pullback.ones(RANK + 1)})
    assert [each["text"] for each in found] == ["", "x"]
    assert found[1]["tensor"].tolist() == [1.0, 1.0]


def check_objects_for_one_rank() -> None:
    found: list[Any] | None = [None, None] if RANK == 1 else None
    dist.gather_object("a" * (RANK + 1), found, dst=1)
    assert found in (None, ["a", "aa"])


def check_objects_from_one_rank() -> None:
    objects: list[Any] = ["seed", 3] if RANK == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == ["seed", 3]
    own: list[Any] = [None]
    dist.scatter_object_list(own, ["first", ["second"]] if RANK == 0 else None, src=0)
    assert own == (["first"] if RANK == 0 else [["second"]])


def check_objects_from_rank_to_rank() -> None:
    objects: list[Any] = [{"loss": 0.5}] if RANK == 0 else [None]
    if RANK == 0:
        dist.send_object_list(objects, dst=1)
    else:
        assert dist.recv_object_list(objects, src=0) == 0
    assert objects == [{"loss": 0.5}]
