"""How values of several processes are joined."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["ReduceOp", "reduce_op", "supports_complex"]


class RedOpType(Enum):
    """The ways in which values of several processes are joined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class _NamesAreOperations(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) in (ReduceOp, RedOpType)


class ReduceOp(metaclass=_NamesAreOperations):
    """How values of several processes are joined: one of the names below, or a sum of multiples.

    >>> ReduceOp.SUM
    <RedOpType.SUM: 0>
    >>> ReduceOp(ReduceOp.MAX) == ReduceOp.MAX
    True
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any = RedOpType.SUM, factor: Any = None) -> None:
        self.op = kind_of(op)
        self.factor = factor if factor is not None else getattr(op, "factor", None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReduceOp) and self.op is kind_of(other)

    def __hash__(self) -> int:
        return hash(self.op)


reduce_op = ReduceOp
"""The older name."""


def kind_of(op: Any) -> RedOpType:
    """Which way of joining `op` means."""
    if isinstance(op, RedOpType):
        return op
    if isinstance(op, ReduceOp):
        return op.op
    raise TypeError(f"incompatible function arguments: op must be a ReduceOp such as ReduceOp.SUM, not {op!r}")


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """The sum of what every rank has, times `factor`."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex values can be joined this way: those without an order can only be added.

    >>> supports_complex(ReduceOp.SUM), supports_complex(ReduceOp.MAX)
    (True, False)
    """
    return kind_of(reduceOp) in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)
