"""What the methods of a process group take, where the functions of `distributed` take arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pullback.distributed.reduce_operation import ReduceOp

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
    "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip

UNSET = timedelta(milliseconds=-1)
"""The group's own timeout counts."""


@dataclass
class AllToAllOptions:
    """How long to wait."""

    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass
class AllreduceOptions(AllToAllOptions):
    """How values are joined.

    >>> AllreduceOptions().reduceOp
    <RedOpType.SUM: 0>
    """

    reduceOp: Any = ReduceOp.SUM


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """The same, for several tensors."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """The same, where every rank gets its part."""


@dataclass
class BroadcastOptions(AllToAllOptions):
    """Whose tensor it is, as a rank of the group."""

    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class ReduceOptions(AllreduceOptions):
    """How values are joined, and who gets the result."""

    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class GatherOptions(AllToAllOptions):
    """Who gets the tensors."""

    rootRank: int = 0


@dataclass
class ScatterOptions(AllToAllOptions):
    """Who has the tensors."""

    rootRank: int = 0


@dataclass
class BarrierOptions(AllToAllOptions):
    """Devices are not asked."""

    device_ids: list[int] = field(default_factory=list)
    device: Any = None
