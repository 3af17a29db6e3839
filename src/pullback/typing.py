"""Type aliases that every layer shares, and the words kernel signatures are written in.

The generator reads these names in a kernel's signature (see docs/adding_an_op.md): `Array` is a tensor argument,
`Dim` a dimension to wrap, and so on. Nothing here exists at run time beyond the aliases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Array: TypeAlias = Any
"""An array of the array library, or its scalar for a 0-dim result. The library's border: its own stubs differ from release
to release, and CuPy has none, so kernels are not checked against them."""

DType: TypeAlias = Any
"""A dtype of the array library."""

Scalar: TypeAlias = bool | int | float | complex
"""A Python number."""

Dim: TypeAlias = int
"""One dimension of `input`; the generated function wraps a negative one before the kernel sees it."""

Dims: TypeAlias = tuple[int, ...] | None
"""Dimensions of `input`, wrapped, or None for all of them."""

Shape: TypeAlias = tuple[int, ...]
"""Sizes, each a non-negative int unless the operation documents -1."""

Arrays: TypeAlias = Sequence[Array]
"""A list of tensors as one argument."""
