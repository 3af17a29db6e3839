"""The mode in which ranks compare what they are about to do: `TORCH_DISTRIBUTED_DEBUG=DETAIL`.

Before each collective every rank sends a line of fixed length that says which one it is, with shapes and dtypes. If the
lines differ, all ranks raise the same error instead of reading each other's bytes wrongly. It costs one more small
message, some 10 us on one machine.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import Any

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]

LINE = 512
"""The bytes of the line that ranks compare; what is longer is shown shortened, with a checksum of the whole."""


class DebugLevel(Enum):
    """How much is checked: nothing more, more messages, or every collective before it begins."""

    OFF = 0
    INFO = 1
    DETAIL = 2


class _Level:
    current = DebugLevel.OFF


def set_debug_level_from_env() -> None:
    """Set the level that the environment variable TORCH_DISTRIBUTED_DEBUG names."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL: it is {name!r}")
    _Level.current = DebugLevel[name]


def get_debug_level() -> DebugLevel:
    """The level in force.

    >>> set_debug_level(DebugLevel.OFF)
    >>> get_debug_level()
    <DebugLevel.OFF: 0>
    """
    return _Level.current


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    _Level.current = level


def describe(name: str, number: int, tensors: Sequence[Any], details: str) -> str:
    """One collective in a line: what ranks must agree on."""
    shapes = ", ".join(f"{tensor.dtype} {list(tensor.shape)}" for tensor in tensors)
    return f"{name}(number {number}{details and ', ' + details}; {shapes or 'no tensors'})"


def encode(line: str) -> bytes:
    """The line in exactly `LINE` bytes."""
    whole = line.encode()
    if len(whole) > LINE:
        whole = whole[: LINE - 20] + f"... {zlib.crc32(whole):08x}".encode()
    return whole.ljust(LINE)


def disagreement(lines: Sequence[str], ranks: Sequence[int]) -> str:
    """The message for ranks whose lines differ."""
    by_line: dict[str, list[int]] = {}
    for line, rank in zip(lines, ranks, strict=True):
        by_line.setdefault(line, []).append(rank)
    parts = [
        f"{'Rank' if len(who) == 1 else 'Ranks'} {', '.join(map(str, who))} {'is' if len(who) == 1 else 'are'} running "
        f"collective: {line}"
        for line, who in by_line.items()
    ]
    return (
        f"Detected mismatch between collectives on ranks. {', but '.join(parts)}. Every rank must call the same "
        "collectives in the same order, with tensors of the same shape and dtype."
    )


set_debug_level_from_env()
