"""`make_tensor`: tensors of random values in the range that a test wants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import pullback
from pullback.backend.dtype import bool_, int64
from pullback.creation import empty
from pullback.modes.user_warnings import warn_user

if TYPE_CHECKING:
    from pullback.tensor.tensor import Tensor

__all__ = ["make_tensor"]

# Per kind of dtype: what low and high are unless given. Integers end one before high.
_FLOATING_RANGE = (-9, 9)
_INTEGRAL_RANGE = (-9, 10)
_BOOLEAN_RANGE = (0, 2)


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor with values drawn uniformly from `[low, high)`, by default within -9 to 9.

    The bounds are clipped to what the dtype can hold. `exclude_zero` replaces zeros by the dtype's smallest number
    above zero; `noncontiguous` spaces the elements out in memory.

    >>> make_tensor(2, 3, dtype=pullback.float32, device="cpu").shape
    pullback.Size([2, 3])
    """
    sizes = _read_shape(shape)
    _check_options(dtype, requires_grad, noncontiguous, memory_format)
    if noncontiguous and math.prod(sizes) > 1:
        result = _draw((*sizes[:-1], 2 * sizes[-1]), dtype, device, low, high)[..., 1::2]
    else:
        result = _draw(sizes, dtype, device, low, high)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = _smallest_above_zero(dtype)
    made: Tensor = result.requires_grad_() if requires_grad else result
    return made


def _read_shape(shape: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        return tuple(shape[0])
    return cast("tuple[int, ...]", shape)


def _check_options(dtype: Any, requires_grad: bool, noncontiguous: bool, memory_format: Any) -> None:
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )


def _draw(shape: tuple[int, ...], dtype: Any, device: Any, low: float | None, high: float | None) -> Any:
    if dtype == bool_:
        start, stop = _choose_range(dtype, low, high, _BOOLEAN_RANGE, (0, 2))
        return pullback.randint(math.ceil(start), math.ceil(stop), shape, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        return _draw_floating(shape, dtype, device, low, high)
    limits = pullback.iinfo(dtype)
    start, stop = _choose_range(dtype, low, high, _INTEGRAL_RANGE, (limits.min, limits.max + 1))
    # int64 has no number above its greatest one, so that one cannot be drawn.
    start, stop = math.ceil(start), min(math.ceil(stop), pullback.iinfo(int64).max)
    return pullback.randint(start, stop, shape, dtype=dtype, device=device)


def _draw_floating(shape: tuple[int, ...], dtype: Any, device: Any, low: float | None, high: float | None) -> Any:
    limits = pullback.finfo(dtype)
    start, stop = _choose_range(dtype, low, high, _FLOATING_RANGE, (limits.min, limits.max))
    if start == stop:
        warn_user(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated. "
            "Use `torch.full(...)` instead.",
            FutureWarning,
        )
    result: Any = empty(shape, dtype=dtype, device=device)
    target = pullback.view_as_real(result) if dtype.is_complex else result
    if stop - start <= limits.max:
        target.uniform_(start, stop)
    else:
        # The width of the interval overflows the dtype: draw half of it.
        target.uniform_(start / 2, stop / 2).mul_(2)
    return result


def _choose_range(
    dtype: Any,
    low: float | None,
    high: float | None,
    default: tuple[float, float],
    representable: tuple[float, float],
) -> tuple[float, float]:
    start = default[0] if low is None else low
    stop = default[1] if high is None else high
    if math.isnan(start) or math.isnan(stop):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={start} and high={stop}")
    may_be_equal = dtype.is_floating_point or dtype.is_complex
    if start > stop or (start == stop and not may_be_equal):
        raise ValueError(f"`low` must be less than `high`, but got {start} >= {stop}")
    lowest, highest = representable
    if start > highest or stop < lowest or (dtype == bool_ and start >= highest):
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{start}, {stop}), "
            f"but {dtype} only supports [{lowest}, {highest})"
        )
    return min(max(start, lowest), highest), min(max(stop, lowest), highest)


def _smallest_above_zero(dtype: Any) -> Any:
    if dtype.is_floating_point or dtype.is_complex:
        return pullback.finfo(dtype).tiny
    return 1
