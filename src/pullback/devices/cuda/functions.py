"""Functions of NumPy that CuPy lacks or has in a narrower form, written with what it has.

Each takes and gives CuPy's arrays, as NumPy's function of that name does NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.modes.determinism import are_deterministic_algorithms_enabled

_IDENTITIES: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True}
_JOINS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}
_SCANS = ("maximum", "minimum", "logical_and", "logical_or", "logaddexp", "logaddexp2", "fmax", "fmin", "bitwise_xor")


def make_overrides(xp: Any) -> dict[str, Any]:
    """The functions, by their dotted names in NumPy."""
    made: dict[str, Any] = {}
    for name in ("sum", "prod", "max", "min", "any", "all"):
        made[name] = _reduction(xp, name)
    made["amax"], made["amin"] = made["max"], made["min"]
    for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        short = next(reduction for reduction, join in _JOINS.items() if join == name)
        made[f"{name}.reduce"] = _reduce_method(made[short])
    made["add.accumulate"] = lambda a, axis=0, dtype=None, out=None: xp.cumsum(a, axis=axis, dtype=dtype, out=out)
    made["multiply.accumulate"] = lambda a, axis=0, dtype=None, out=None: xp.cumprod(a, axis=axis, dtype=dtype, out=out)
    for name in _SCANS:
        if hasattr(xp, name):
            made[f"{name}.accumulate"] = _scan(xp, getattr(xp, name))
    made["bitwise_xor.reduce"] = _last_of(made["bitwise_xor.accumulate"])
    for name in ("add", "maximum", "minimum", "fmax", "fmin"):
        if hasattr(xp, name):
            made[f"{name}.reduceat"] = _reduce_at(xp, getattr(xp, name))
    made["multiply.at"] = _multiply_at(xp)
    made["add.at"] = _add_at(xp, made["add.reduceat"])
    for name in _UFUNCS:
        if hasattr(xp, name):
            made[name] = _with_where(xp, getattr(xp, name))
    for name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
        made[name] = _of_truth(getattr(xp, name))
    made["count_nonzero"] = _count_nonzero(xp)
    made["repeat"] = _repeat(xp)
    made["argsort"] = lambda a, axis=-1, kind=None, **_: xp.argsort(a, axis=axis)
    made["sort"] = lambda a, axis=-1, kind=None, **_: xp.sort(a, axis=axis)
    made["put_along_axis"] = _put_along_axis(xp)
    made["array"] = _array(xp)
    made["asanyarray"] = xp.asarray
    made["may_share_memory"] = xp.may_share_memory
    made["isposinf"] = lambda x: x == np.inf
    made["isneginf"] = lambda x: x == -np.inf
    made["take"] = _take(xp)
    made["polyval"], made["polyder"] = _polyval, _polyder
    made["broadcast_arrays"] = _broadcast_arrays(xp)
    for name in ("maximum", "minimum"):
        made[f"{name}.at"] = _extremum_at(xp, name, made[f"{name}.reduceat"])
    made["concatenate"] = _concatenate(xp)
    made["linalg.solve"] = _solve(xp)
    made["broadcast_to"] = lambda a, shape, subok=False: xp.broadcast_to(a, shape)
    return made


_UFUNCS = (
    "add subtract multiply divide true_divide floor_divide power exp log sqrt maximum minimum negative reciprocal sin cos "
    "log1p expm1 remainder fmod abs absolute"
).split()
"""Those that kernels call with `where=`."""


def _with_where(xp: Any, function: Any) -> Callable[..., Any]:
    """A function element by element that also takes `where=`: elsewhere the result is what `out` holds."""

    def call(*args: Any, where: Any = True, order: str = "K", **options: Any) -> Any:
        options.pop("subok", None)
        if where is True and order == "K":
            out = options.get("out")
            if out is None or _fits(xp, args, out):
                return function(*args, **options)
        out = options.pop("out", None)
        out = out[0] if isinstance(out, tuple) else out
        result = function(*args, **options)
        if out is None:
            return xp.asarray(result, order="C") if order == "C" else result
        xp.copyto(out, xp.broadcast_to(result, out.shape).astype(out.dtype, copy=False), where=where)
        return out

    for method in ("at", "reduce", "accumulate", "reduceat", "outer"):
        if hasattr(function, method):
            setattr(call, method, getattr(function, method))
    return call


def _of_truth(function: Any) -> Callable[..., Any]:
    """A logical function, which CuPy does not have for complex numbers."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*[a != 0 if getattr(a, "dtype", _REAL).kind == "c" else a for a in args], **options)

    for method in ("at", "reduce", "accumulate", "reduceat", "outer"):
        if hasattr(function, method):
            setattr(call, method, getattr(function, method))
    return call


_REAL = np.dtype(np.float64)


def _count_nonzero(xp: Any) -> Callable[..., Any]:
    def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        counts = xp.count_nonzero(a, axis=axis)
        return counts.reshape(_reduced_shape(a, axis, True)) if keepdims else counts

    return count_nonzero


def _fits(xp: Any, args: Any, out: Any) -> bool:
    """Whether `out` has the shape of the result: CuPy does not repeat a result to fill it."""
    out = out[0] if isinstance(out, tuple) else out
    shapes = [a.shape for a in args if isinstance(a, xp.ndarray)]
    return bool(np.broadcast_shapes(*shapes) == out.shape)


def _reduction(xp: Any, name: str) -> Callable[..., Any]:
    function, join = getattr(xp, name), getattr(xp, _JOINS[name])

    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        if isinstance(a, (tuple, list)) and not any(isinstance(item, xp.ndarray) for item in a):
            return getattr(np, name)(a, axis=axis).tolist()  # sizes: they stay on the host
        where, initial = options.pop("where", None), options.pop("initial", None)
        kept = {"axis": axis, "keepdims": bool(keepdims)}
        if dtype is not None:
            kept["dtype"] = dtype
        if where is not None and where is not True:
            start = _IDENTITIES[name] if initial is None else initial
            a = xp.where(where, a, xp.asarray(start, a.dtype))
        if initial is not None and not _count(a, axis):
            result = xp.full(_reduced_shape(a, axis, bool(keepdims)), initial, dtype or a.dtype)
        else:
            result = function(a, **kept)
            if initial is not None:
                result = join(result, xp.asarray(initial, result.dtype))
        if out is not None:
            out = out[0] if isinstance(out, tuple) else out
            out[...] = result
            return out
        return result

    return reduce


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(n % a.ndim for n in (axis if isinstance(axis, tuple) else (axis,)))


def _count(a: Any, axis: Any) -> int:
    count = 1
    for n in _axes(a, axis):
        count *= a.shape[n]
    return count


def _reduced_shape(a: Any, axis: Any, keepdims: bool) -> tuple[int, ...]:
    axes = _axes(a, axis)
    if keepdims:
        return tuple(1 if n in axes else size for n, size in enumerate(a.shape))
    return tuple(size for n, size in enumerate(a.shape) if n not in axes)


def _reduce_method(function: Any) -> Callable[..., Any]:
    """The method of a ufunc, which reduces the first axis unless told otherwise."""

    def reduce(
        a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        return function(a, axis, dtype, out, keepdims, **options)

    return reduce


def _scan(xp: Any, join: Any) -> Callable[..., Any]:
    """Join every element with all before it: in as many steps as the length has binary digits."""

    def accumulate(a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        result = xp.array(a, dtype=dtype, copy=True)
        moved = xp.moveaxis(result, axis, 0)
        step = 1
        while step < moved.shape[0]:
            moved[step:] = join(moved[step:], moved[:-step].copy())
            step *= 2
        if out is not None:
            out[...] = result
            return out
        return result

    return accumulate


def _last_of(scan: Any) -> Callable[..., Any]:
    """A reduction over one axis or several, as the end of a scan."""

    def reduce(a: Any, axis: Any = 0, *, keepdims: bool = False, **_: Any) -> Any:
        axes = _axes(a, axis)
        others = [n for n in range(a.ndim) if n not in axes]
        rows = a.transpose((*others, *axes)).reshape([*[a.shape[n] for n in others], -1])
        result = scan(rows, axis=-1).take(-1, axis=-1)
        return result.reshape(_reduced_shape(a, axis, True)) if keepdims else result

    return reduce


def _reduce_at(xp: Any, join: Any) -> Callable[..., Any]:
    """Reduce runs of the axis that begin at increasing positions, by a scan that starts anew with every run."""

    def reduceat(a: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
        moved = xp.moveaxis(xp.array(a, copy=True), axis, 0)
        length = moved.shape[0]
        indices = xp.asarray(indices)
        marks = xp.zeros(length, xp.int64)
        marks[indices] = 1
        run = xp.cumsum(marks).reshape((-1,) + (1,) * (moved.ndim - 1))
        step = 1
        while step < length:
            moved[step:] = xp.where(run[step:] == run[:-step], join(moved[step:], moved[:-step]), moved[step:])
            step *= 2
        ends = xp.append(indices[1:], length) - 1
        return xp.moveaxis(moved[xp.maximum(ends, indices)], 0, axis)

    return reduceat


def _add_at(xp: Any, reduceat: Callable[..., Any]) -> Callable[..., Any]:
    """Add at positions that may repeat. CuPy knows no complex numbers and no small types here."""

    def add_at(a: Any, indices: Any, values: Any = 1) -> None:
        kind, size = a.dtype.kind, a.dtype.itemsize
        in_order = kind in "fcV" and are_deterministic_algorithms_enabled()
        if kind in "fcV":
            note_unpromised(ARRIVAL, "sums at positions on a GPU")
        add = partial(_add_in_order, xp, reduceat) if in_order else xp.add.at
        if kind in "fiu" and size >= 4:
            add(a, indices, _cast(xp, values, a.dtype))
            return
        if kind == "c":
            values = _cast(xp, values, a.dtype)
            add(a.real, indices, values.real)
            add(a.imag, indices, values.imag)
            return
        wide = xp.float32 if kind in "fV" else xp.int32
        total = a.astype(wide)
        add(total, indices, _cast(xp, values, wide))
        a[...] = total.astype(a.dtype)

    return add_at


def _add_in_order(xp: Any, reduceat: Callable[..., Any], a: Any, indices: Any, values: Any) -> None:
    """Add at positions that may repeat, with the same bits in every run: atomic additions come in no fixed order."""
    positions = xp.arange(a.size).reshape(a.shape)[indices]
    if not positions.size:
        return
    given = xp.broadcast_to(values, positions.shape).ravel()
    flat = positions.ravel()
    order = xp.argsort(flat)
    flat = flat[order]
    starts = xp.flatnonzero(xp.append(xp.ones(1, bool), flat[1:] != flat[:-1]))
    a[xp.unravel_index(flat[starts], a.shape)] += reduceat(given[order], starts)


def _cast(xp: Any, values: Any, dtype: Any) -> Any:
    return xp.asarray(values, dtype)


def _multiply_at(xp: Any) -> Callable[..., Any]:
    """Multiply at positions that may repeat: by rounds, each of which takes one value per position."""

    def multiply_at(a: Any, indices: Any, values: Any) -> None:
        index = indices if isinstance(indices, tuple) else (indices,)
        places = xp.arange(a.size).reshape(a.shape)[index].ravel()
        values = xp.broadcast_to(xp.asarray(values, a.dtype), a[index].shape).ravel()
        order = xp.argsort(places)
        places, values = places[order], values[order]
        first = xp.searchsorted(places, places)
        turn = xp.arange(places.size) - first
        flat = a.reshape(-1)
        for number in range(int(turn.max()) + 1 if places.size else 0):
            chosen = turn == number
            flat[places[chosen]] *= values[chosen]
        if not xp.may_share_memory(flat, a):
            a[...] = flat.reshape(a.shape)

    return multiply_at


def _repeat(xp: Any) -> Callable[..., Any]:
    """Repeat elements, also each as often as an array says."""

    def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
        if not isinstance(repeats, xp.ndarray) or repeats.ndim == 0 or repeats.size == 1:
            return xp.repeat(a, int(repeats.item()) if isinstance(repeats, xp.ndarray) else repeats, axis)
        ends = xp.cumsum(repeats)
        places = xp.searchsorted(ends, xp.arange(int(ends[-1])), side="right")
        return xp.take(a, places, axis)

    return repeat


def _polyval(p: Any, x: Any) -> Any:
    """A polynomial, highest power first, by Horner's rule."""
    result = x * 0
    for coefficient in p:
        result = result * x + coefficient
    return result


def _polyder(p: Any) -> Any:
    """The coefficients of the derivative of a polynomial, on the host as they are given."""
    return np.polyder(np.asarray(p)).tolist()


def _broadcast_arrays(xp: Any) -> Callable[..., Any]:
    def broadcast_arrays(*arrays: Any) -> Any:
        arrays = tuple([xp.asarray(a) for a in arrays])
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        return [xp.broadcast_to(a, shape) for a in arrays]

    return broadcast_arrays


def _extremum_at(xp: Any, name: str, reduceat: Any) -> Callable[..., Any]:
    """The larger (smaller) of what is there and all values for a place. CuPy's own loses digits of float64."""

    def at(a: Any, indices: Any, values: Any) -> None:
        index = indices if isinstance(indices, tuple) else (indices,)
        places = xp.arange(a.size).reshape(a.shape)[index].ravel()
        if not places.size:
            return
        values = xp.broadcast_to(xp.asarray(values, a.dtype), a[index].shape).ravel()
        order = xp.argsort(places)
        places, values = places[order], values[order]
        starts = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), places[1:] != places[:-1]]))
        found, where = reduceat(values, starts), xp.unravel_index(places[starts], a.shape)
        a[where] = getattr(xp, name)(a[where], found)

    return at


def _take(xp: Any) -> Callable[..., Any]:
    """Elements at positions; what is out of range is counted from the other end, so callers check before."""

    def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
        if not isinstance(a, xp.ndarray):
            a = xp.asarray(a)
        if mode == "clip":
            indices = xp.clip(indices, 0, (a.size if axis is None else a.shape[axis]) - 1)
        return xp.take(a, indices, axis, out)

    return take


def _concatenate(xp: Any) -> Callable[..., Any]:
    def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, **options: Any) -> Any:
        return xp.concatenate([xp.asarray(a) for a in arrays], axis, out, **options)

    return concatenate


def _solve(xp: Any) -> Callable[..., Any]:
    def solve(a: Any, b: Any) -> Any:
        """NumPy's rule: one vector if `b` has one dimension, else matrices, repeated to meet those of `a`."""
        if b.ndim == 1 and a.ndim > 2:
            b = xp.broadcast_to(b[:, None], (*a.shape[:-2], b.shape[0], 1))
            return xp.linalg.solve(a, xp.ascontiguousarray(b))[..., 0]
        if b.ndim > 1:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a = xp.ascontiguousarray(xp.broadcast_to(a, (*batch, *a.shape[-2:])))
            b = xp.ascontiguousarray(xp.broadcast_to(b, (*batch, *b.shape[-2:])))
        if not a.size or not b.size:
            return xp.zeros_like(b)
        return xp.linalg.solve(a, b)

    return solve


def _put_along_axis(xp: Any) -> Callable[..., Any]:
    def put_along_axis(arr: Any, indices: Any, values: Any, axis: int) -> None:
        axis %= arr.ndim
        grids = [
            xp.arange(size).reshape([-1 if n == place else 1 for n in range(arr.ndim)])
            for place, size in enumerate(indices.shape)
        ]
        grids[axis] = indices
        arr[tuple(grids)] = values

    return put_along_axis


def _array(xp: Any) -> Callable[..., Any]:
    def array(
        object: Any, dtype: Any = None, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0
    ) -> Any:
        if isinstance(object, xp.ndarray) and (copy is None or copy is False):
            return xp.asarray(object, dtype)
        return xp.array(object, dtype=dtype, copy=True, order=order, ndmin=ndmin)

    return array
