"""Ranges of numbers, identity matrices, positions of triangles."""

from __future__ import annotations

from functools import partial
from typing import Any

from pullback.backend.dtype import default_float, int64, number_dtype, scalar_type_name
from pullback.checks.new_tensors import check_range, check_steps
from pullback.creation.options import allocated, dtype_option, finish, number_of, show_creation
from pullback.errors import no_signature_fits, wrong_type
from pullback.facts import declare
from pullback.kernels.creation import (
    arange_array,
    closed_range_array,
    eye_array,
    linspace_array,
    logspace_array,
    triangle_positions,
)  # fmt: skip
from pullback.modes.function_modes import is_told, tell_modes, told_to_modes
from pullback.modes.interception import interceptable
from pullback.modes.switches import process
from pullback.modes.user_warnings import warn_user
from pullback.tensor.arguments import as_int
from pullback.tensor.tensor import Tensor


@declare(found="torch")
def arange(*bounds: Any, **options: Any) -> Tensor:
    """Values from start (0) to end, end excluded, in steps (1).

    A vector of ceil((end - start) / step) elements, y[i] = start + i * step: int64 if all three are integers, else
    the default dtype.

    >>> import pullback
    >>> pullback.arange(2, 8, 2)
    tensor([2, 4, 6])
    """
    if process.modes and is_told():
        return tell_modes(arange, bounds, options)
    start, end, step = _bounds(bounds, options)
    if process.changed:
        given = {"start": start, "end": end, "step": step}
        shown = show_creation(arange, (), {**{k: given[k] for k in _told(start, step)}, **options})
        if shown is not None:
            return shown
    wanted = dtype_option("arange", options.pop("dtype", None), options.get("out"))
    check_range(start, end, step)
    return finish("arange", allocated(arange_array, start, end, step, wanted), options)


def _told(start: Any, step: Any) -> tuple[str, ...]:
    """The bounds that ATen is told of: which of its three overloads takes them."""
    return ("start", "end", "step") if step != 1 else ("start", "end") if start != 0 else ("end",)


_BOUNDS = ("start", "end", "step")


def _bounds(given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    if len(given) == 1 and type(given[0]) is int and options.keys().isdisjoint(_BOUNDS):
        return 0, given[0], 1
    named = {name: options.pop(name) for name in _BOUNDS if name in options}
    by_name = [f"{name}={type(value).__name__}" for name, value in named.items()]
    if len(given) == 1:
        named["start" if "end" in named else "end"] = given[0]
    elif given and "start" in named:
        named.update(zip(("end", "step"), given, strict=False))
    else:
        named.update(zip(_BOUNDS, given, strict=False))
    if "end" not in named or len(given) > 3:
        raise no_signature_fits("arange", [*[type(value).__name__ for value in given], *by_name])
    for value in named.values():
        if isinstance(value, complex):
            raise RuntimeError(f"value cannot be converted to type double without overflow: {value}")
    numbers = {name: number_of("arange", name, 1, value) for name, value in named.items()}
    return numbers.get("start", 0), numbers["end"], numbers.get("step", 1)


@declare(found="torch")
def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Tensor:
    """As `arange`, but with the end included (deprecated in PyTorch)."""
    warn_user(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    first, last, width = (number_of("range", "end", 1, value) for value in (start, end, step))
    wanted = dtype_option("range", dtype, options.get("out")) or default_float()
    check_range(first, last, width)
    return finish("range", closed_range_array(first, last, width, wanted), options)


@told_to_modes
@interceptable
@declare(out_resized="silently", found="torch")
def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """`steps` evenly spaced values from start to end.

    A vector (steps,) with both ends: y[i] = start + i * (end - start) / (steps - 1).
    """
    first, last = number_of("linspace", "start", 1, start), number_of("linspace", "end", 2, end)
    count = _steps("linspace", steps)
    check_steps(count)
    wanted = _spaced_dtype("linspace", first, last, count, dtype_option("linspace", dtype, options.get("out")))
    return finish("linspace", allocated(linspace_array, first, last, count, wanted), options)


def _spaced_dtype(function: str, first: Any, last: Any, steps: int, wanted: Any) -> Any:
    """The dtype of values between two numbers: the wanted one, if it can hold them."""
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    if wanted is None:
        return number_dtype(1j) if is_complex else default_float()
    if is_complex and wanted.kind not in "cW":
        raise RuntimeError(
            f"torch.{function}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype "
            f"{scalar_type_name(wanted)}"
        )
    if wanted.kind == "b" and steps > 1:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    return wanted


def _steps(function: str, steps: Any) -> int:
    try:
        return as_int(steps)
    except TypeError:
        raise no_signature_fits(function, ["int", "int", type(steps).__name__]) from None


@told_to_modes
@interceptable
@declare(out_resized="silently", found="torch")
def logspace(start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: Any = None, **options: Any) -> Tensor:
    """`steps` values whose logarithms are evenly spaced.

    From base ** start to base ** end, one-dimensional. y[i] = base ** (start + (end - start) * i / (steps - 1)).

    >>> import pullback
    >>> pullback.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last = number_of("logspace", "start", 1, start), number_of("logspace", "end", 2, end)
    radix = number_of("logspace", "base", 4, base)
    count = _steps("logspace", steps)
    check_steps(count)
    wanted = _spaced_dtype("logspace", first, last, count, dtype_option("logspace", dtype, options.get("out")))
    return finish("logspace", allocated(logspace_array, first, last, count, radix, wanted), options)


@told_to_modes
@declare(out_resized="silently", found="torch")
def eye(n: Any, m: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """A matrix with ones on the diagonal.

    The result is (n, n), or (n, m): y[i, j] = 1 if i == j else 0.
    """
    if process.changed:
        shown = show_creation(eye, (n,) if m is None else (n, m), {"dtype": dtype, **options})
        if shown is not None:
            return shown
    for name, size in (("n", n), ("m", m)):
        if size is None:
            continue
        if not _is_whole(size):
            if m is None:
                raise wrong_type("eye", "n", 1, "int", n)
            raise no_signature_fits("eye", [type(value).__name__ for value in (n, m)])
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    wanted = dtype_option("eye", dtype, options.get("out")) or default_float()
    return finish("eye", allocated(eye_array, as_int(n), None if m is None else as_int(m), wanted), options)


def _is_whole(value: Any) -> bool:
    """Whether `value` is a whole number: a tensor may be one, if it has one element."""
    return hasattr(value, "__index__") and (not isinstance(value, Tensor) or value._array.size == 1)


@declare(found="torch")
@told_to_modes
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, **options: Any) -> Tensor:
    """The rows and columns of the elements of a lower triangle.

    Of a matrix with `row` rows and `col` columns, in the shape (2, n): i >= j - offset.

    >>> import pullback
    >>> pullback.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle("tril_indices", row, col, offset, dtype, options)


@declare(found="torch")
@told_to_modes
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, **options: Any) -> Tensor:
    """The rows and columns of the elements of an upper triangle.

    Of a matrix with `row` rows and `col` columns, in the shape (2, n): j >= i + offset.

    >>> import pullback
    >>> pullback.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", row, col, offset, dtype, options)


def _triangle(function: str, row: int, col: int, offset: int, dtype: Any, options: dict[str, Any]) -> Tensor:
    for position, (name, size) in enumerate((("row", row), ("col", col), ("offset", offset)), 1):
        if not _is_whole(size):
            raise wrong_type(function, name, position, "int", size)
        if size < 0 and name != "offset":
            raise RuntimeError(f"{name} must be non-negative, got{size}")
    wanted = dtype_option(function, dtype) or int64.numpy_dtype
    if wanted.kind in "bc":
        raise NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(wanted)}'")
    positions = partial(triangle_positions, lower=function == "tril_indices")
    return finish(function, allocated(positions, row, col, offset, wanted), options)
