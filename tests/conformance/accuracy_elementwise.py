"""The accuracy of elementwise functions and of their first derivatives, in units in the last place of mpmath's values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from mpmath import mp

import pullback

from .accuracy_arguments import complex_regions, pair_regions, real_regions, special_arguments
from .accuracy_functions import FUNCTIONS, Function
from .accuracy_measurement import Measurement

Array = Any
Call = Callable[..., Array]
EVENLY, WORST = 300, 60
"""Of the arguments of a region, how many are measured wherever they lie, and how many where the libraries differ most."""


def labels() -> list[str]:
    """The names of the functions, in order."""
    return [function.label for function in FUNCTIONS]


def no_digit(limits: Any) -> float:
    """The error of a result that has no digit in common with the true value: more is not worse."""
    return float(2 ** int(limits.nmant))


def units_from(actual: float, true: Any, limits: Any) -> float:
    """The distance to the true value in units of its last place; an infinity counts as the next power of two."""
    if actual != actual or true != true:
        return 0.0 if true != true else np.inf
    top = mp.ldexp(1, int(limits.maxexp))
    true, number = max(-top, min(top, true)), max(-top, min(top, mp.mpf(actual)))
    exponent = max(mp.frexp(true)[1] - 1, int(limits.minexp)) if true else int(limits.minexp)
    return min(float(abs(number - true) / mp.ldexp(1, exponent - int(limits.nmant))), no_digit(limits))


def error_of(actual: Any, true: Any, limits: Any) -> float:
    """The same for a complex number: the worse part, in units of the last place of the whole."""
    if not isinstance(actual, complex):
        return units_from(actual, true, limits)
    size = mp.mpf(abs(mp.mpc(true)))
    if size == 0 or not mp.isfinite(size):
        return max(units_from(actual.real, mp.re(true), limits), units_from(actual.imag, mp.im(true), limits))
    exponent = max(mp.frexp(size)[1] - 1, int(limits.minexp))
    unit = mp.ldexp(1, exponent - int(limits.nmant))
    top = mp.ldexp(1, int(limits.maxexp))
    parts = ((actual.real, mp.re(true)), (actual.imag, mp.im(true)))
    if any(a != a for a, _ in parts):
        return np.inf
    errors = (abs(max(-top, min(top, mp.mpf(a))) - max(-top, min(top, t))) / unit for a, t in parts)
    return min(float(max(errors)), no_digit(limits))


def true_value(function: Function, arguments: list[Any], wrt: int | None) -> Any:
    """The value of the reference, or its derivative by a central difference of enough digits; None where it has none."""
    convert = mp.mpc if isinstance(arguments[0], complex) else mp.mpf
    leading = [v for name, v in function.options.items() if name == "n"]
    sizes = [abs(mp.frexp(mp.mpf(part))[1]) for a in arguments for part in parts_of(a) if part and np.isfinite(part)]
    trusted = function.slow or (function.analytic and function.arity == 1 and wrt is None)
    with mp.workprec((160 if wrt is None else 330) + (0 if trusted else 2 * max(sizes, default=0))):
        try:
            x = [convert(a) for a in arguments]
            if wrt is None:
                value = function.reference(*leading, *x)
            else:
                step = mp.ldexp(min(mp.mpf(1), abs(x[wrt])), -90)
                above, below = ([*x[:wrt], x[wrt] + s, *x[wrt + 1 :]] for s in (step, -step))
                value = (function.reference(*leading, *above) - function.reference(*leading, *below)) / (2 * step)
                value = mp.conj(value)
        except Exception:
            return None
        if convert is mp.mpf and isinstance(value, mp.mpc):
            return None
        return value


def parts_of(number: Any) -> tuple[float, ...]:
    return (number.real, number.imag) if isinstance(number, complex) else (number,)


def call_in(library: Any, function: Function, wrt: int | None) -> Call:
    """The function of a library, or its derivative by an argument, on arrays."""
    target = attrgetter(function.name)(library)

    def call(*arguments: Array) -> Array:
        tensors = [library.from_numpy(np.ascontiguousarray(a)) for a in arguments]
        if wrt is not None:
            tensors[wrt].requires_grad_()
        leading = [v for name, v in function.options.items() if name == "n"]
        named = {name: v for name, v in function.options.items() if name != "n"}
        result = target(*leading, *tensors, **named)
        if wrt is not None:
            (result,) = library.autograd.grad(result, tensors[wrt], library.ones_like(result))
        return result.detach().resolve_conj().numpy()

    return call


def measure(function: Function, dtype: Any, wrt: int | None, ours: Call | None = None) -> Measurement | None:
    """Measure one function, or its derivative; None where PyTorch has none in this dtype."""
    of = "" if wrt is None else f" derivative{wrt if function.arity > 1 else ''}"
    measurement = Measurement(f"{function.label} {np.dtype(dtype)}{of}")
    ours, theirs = ours or call_in(pullback, function, wrt), call_in(torch, function, wrt)
    special = special_arguments(function.arity, dtype)
    try:
        expected = theirs(*special)
    except (RuntimeError, NotImplementedError):
        return None
    actual = ours(*special)
    if actual.dtype != expected.dtype:
        measurement.flags.append(f"dtype {actual.dtype} against {expected.dtype}")
        return measurement
    limits = np.finfo(expected.dtype)
    parted = np.dtype(dtype).kind == "c" and function.arity == 2  # there each C library has its own way with infinities
    for i in special_differences(actual, expected, signed=wrt is None) if not parted else ():
        arguments = [a[i].item() for a in special]
        true = true_value(function, arguments, wrt) if np.isfinite(actual[i]) and np.isfinite(expected[i]) else None
        if true is None or error_of(actual[i].item(), true, limits) >= error_of(expected[i].item(), true, limits):
            measurement.flags.append(f"special: {actual[i]} against {expected[i]} at {arguments}")
    for region, values in regions_of(function, dtype, wrt).items():
        chosen = values if isinstance(values, tuple) else (values,)
        actual, expected = ours(*chosen), theirs(*chosen)
        errors: list[tuple[list[Any], float, float]] = []
        for i in most_telling(actual, expected, function.slow or wrt is not None or expected.dtype.kind == "c"):
            arguments = [a[i].item() for a in chosen]
            true = true_value(function, arguments, wrt)
            if true is not None and mp.isfinite(true):
                of_ours, of_theirs = (error_of(values[i].item(), true, limits) for values in (actual, expected))
                errors.append((arguments, of_ours, of_theirs))
            elif np.isfinite(expected[i]) and not np.isfinite(actual[i]):
                measurement.flags.append(
                    f"{region}: {actual[i]} against {expected[i]} at {arguments}, without a reference"
                )
        measurement.add(region, [e[0] for e in errors], [e[1] for e in errors], [e[2] for e in errors])
    del measurement.flags[8:]
    return measurement


def regions_of(function: Function, dtype: Any, wrt: int | None) -> dict[str, Any]:
    """The regions of arguments that suit a function and a dtype; of complex derivatives both libraries' formulas overflow."""
    if np.dtype(dtype).kind != "c":
        return pair_regions(function, dtype) if function.arity == 2 else dict(real_regions(function, dtype))
    regions = complex_regions(dtype)
    if wrt is not None:
        regions = {name: values for name, values in regions.items() if name not in ("tiny", "huge", "wide")}
    if function.arity == 1:
        return dict(regions)
    order = np.random.default_rng(1).permutation(next(iter(regions.values())).size)
    return {
        name: (values, values[order]) for name, values in regions.items() if name in ("ordinary", "moderate", "tiny")
    }


def most_telling(actual: Array, expected: Array, few: bool) -> list[int]:
    """The arguments to measure: some of all, and those where the two libraries differ most."""
    parts = 4 if few else 1
    with np.errstate(all="ignore"):
        distance = np.abs(actual - expected) / np.maximum(np.abs(expected), np.finfo(expected.dtype).tiny)
        distance = np.where(actual == expected, 0, np.where(np.isnan(distance), np.inf, distance))
    distance = np.where(np.isnan(actual) & np.isnan(expected), -1, distance)
    evenly = np.linspace(0, len(actual) - 1, EVENLY // parts).astype(int)
    return sorted({*evenly.tolist(), *np.argsort(-distance)[: WORST // parts].tolist()})


def special_differences(actual: Array, expected: Array, signed: bool) -> list[int]:
    """Where one result is NaN, infinite or a zero (of some sign), and the other is not."""
    if not signed:
        actual, expected = actual + 0, expected + 0
    return [i for i in range(len(actual)) if differ_in_kind(actual[i], expected[i])]


def differ_in_kind(ours: Any, theirs: Any) -> bool:
    """Whether one number is NaN, infinite or zero, and the other is not that, or has another sign."""
    kinds = []
    for number in (ours, theirs):
        parts = parts_of(number.item())
        kinds.append([(np.isnan(p), np.isinf(p), p == 0, not np.isnan(p) and bool(np.signbit(p))) for p in parts])
    return kinds[0] != kinds[1]


def cases(function: Function) -> Iterator[tuple[Any, int | None]]:
    """The dtypes of a function, and whether its value or a derivative is measured."""
    for dtype in (np.float32, np.float64, *((np.complex64, np.complex128) if function.analytic else ())):
        yield from ((dtype, wrt) for wrt in (None, *range(function.arity)))


def measure_all(index: int) -> list[tuple[str, int]]:
    """The lines of one function, each with the number of its flags."""
    warnings.simplefilter("ignore")
    function = FUNCTIONS[index]
    found = (measure(function, dtype, wrt) for dtype, wrt in cases(function))
    return [(str(m), len(m.flags)) for m in found if m is not None]
