"""Types of arguments that stand for one number per spatial dimension."""

from __future__ import annotations

from typing import Any, TypeAlias

_scalar_or_tuple_any_t: TypeAlias = int | tuple[int, ...]
_scalar_or_tuple_1_t: TypeAlias = int | tuple[int]
_scalar_or_tuple_2_t: TypeAlias = int | tuple[int, int]
_scalar_or_tuple_3_t: TypeAlias = int | tuple[int, int, int]
_scalar_or_tuple_4_t: TypeAlias = int | tuple[int, int, int, int]
_scalar_or_tuple_6_t: TypeAlias = int | tuple[int, int, int, int, int, int]
_size_any_t = _scalar_or_tuple_any_t
_size_1_t = _scalar_or_tuple_1_t
_size_2_t = _scalar_or_tuple_2_t
_size_3_t = _scalar_or_tuple_3_t
_size_4_t = _scalar_or_tuple_4_t
_size_6_t = _scalar_or_tuple_6_t
_size_any_opt_t: TypeAlias = int | tuple[int | None, ...] | None
_size_2_opt_t: TypeAlias = int | tuple[int | None, int | None] | None
_size_3_opt_t: TypeAlias = int | tuple[int | None, int | None, int | None] | None
_ratio_2_t: TypeAlias = float | tuple[float, float]
_ratio_3_t: TypeAlias = float | tuple[float, float, float]
_ratio_any_t: TypeAlias = float | tuple[float, ...]
_tensor_list_t: TypeAlias = Any
_maybe_indices_t: TypeAlias = Any
