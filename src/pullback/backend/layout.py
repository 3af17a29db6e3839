"""Layouts and memory formats: how a tensor's elements are stored, and in which order of dimensions."""

from __future__ import annotations

from pullback.backend.naming import display_namespace


class layout:
    """How a tensor's elements are stored; only strided ones exist here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"


strided = layout("strided")


sparse_coo = layout("sparse_coo")


sparse_csr = layout("sparse_csr")


sparse_csc = layout("sparse_csc")


jagged = layout("jagged")


class memory_format:
    """The order of dimensions in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"


contiguous_format = memory_format("contiguous_format")


preserve_format = memory_format("preserve_format")


legacy_contiguous_format = contiguous_format


channels_last = memory_format("channels_last")


channels_last_3d = memory_format("channels_last_3d")
