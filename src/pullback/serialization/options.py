"""Process-wide choices about reading and writing checkpoints."""

from __future__ import annotations

from enum import Enum

from pullback.backend.storage import native_byte_order


class LoadEndianness(Enum):
    """Which byte order a file has that does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """The source of a class has changed since an object of it was saved."""


class _Choices:
    endianness: LoadEndianness | None = None
    compute_crc32 = True


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order assumed for files that do not say theirs; None is little endian."""
    return _Choices.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Choices.endianness = endianness


def assumed_byte_order() -> str:
    """The byte order of files that do not say theirs."""
    if _Choices.endianness is LoadEndianness.NATIVE:
        return native_byte_order()
    return "big" if _Choices.endianness is LoadEndianness.BIG else "little"


def get_crc32_options() -> bool:
    """Return whether `save` computes the checksums of its records."""
    return _Choices.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes checksums. Without them saving is faster and damage goes unnoticed."""
    _Choices.compute_crc32 = compute_crc32
