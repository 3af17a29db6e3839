"""`assert_close`: compare tensors, numbers and containers of them, and say precisely how they differ.

Both sides are first taken apart into pairs of leaves (`_pair_up`), then each pair is compared (`_compare_*`); a
mismatch carries the path of its leaf to the message.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pullback
from pullback.autograd.grad_mode import no_grad
from pullback.backend import numpy_objects
from pullback.backend.dtype import from_numpy_dtype, int64, promote_dtypes
from pullback.creation import as_tensor, tensor
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor
from pullback.testing.tolerances import Tolerances, choose_tolerances, find_matches

__all__ = ["assert_allclose", "assert_close"]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `actual` and `expected` are close: `|actual - expected| <= atol + rtol * |expected|`.

    Without tolerances, the defaults of the wider dtype are used (integers must be equal). Sequences and mappings are
    compared member by member. `msg` replaces the message, or is called with it and returns another.

    >>> assert_close([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """
    __tracebackhide__ = True  # pytest then shows the caller's line
    if (rtol is None) != (atol is None):
        choose_tolerances(rtol, atol)
    options = _Options(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, msg
    )
    for pair in list(_pair_up(actual, expected, (), options)):
        pair.compare()


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare as `assert_close` does, without regard to dtype and device, and with NaN equal to NaN."""
    warn_user(
        "`torch.testing.assert_allclose()` is deprecated. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    actual, expected = (side if isinstance(side, Tensor) else tensor(side) for side in (actual, expected))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


@dataclass(frozen=True)
class _Options:
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool
    msg: str | Callable[[str], str] | None


def _pair_up(actual: Any, expected: Any, path: tuple[Any, ...], options: _Options) -> Iterator[_Pair]:
    """Take both sides apart into pairs of leaves, checking that the containers agree."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path, options)
        for position in range(len(actual)):
            yield from _pair_up(actual[position], expected[position], (*path, position), options)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _check_keys(actual, expected, path, options)
        for key in _sorted_if_possible(actual):
            yield from _pair_up(actual[key], expected[key], (*path, key), options)
    else:
        yield _make_pair(actual, expected, path, options)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _check_keys(
    actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: tuple[Any, ...], options: _Options
) -> None:
    missing, additional = set(expected) - set(actual), set(actual) - set(expected)
    if missing or additional:
        _fail(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted_if_possible(missing)}\n"
            f"Additional keys in the actual mapping: {_sorted_if_possible(additional)}",
            path,
            options,
        )


def _sorted_if_possible(keys: Any) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _make_pair(actual: Any, expected: Any, path: tuple[Any, ...], options: _Options) -> _Pair:
    for kind in (_NonePair, _BooleanPair, _NumberPair, _TensorLikePair):
        if kind.accepts(actual, expected, options):
            return kind(actual, expected, path, options)
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.{_at(path)}"
    )


def _at(path: tuple[Any, ...]) -> str:
    return f"\n\nThe failure occurred for item {''.join(f'[{step!r}]' for step in path)}" if path else ""


def _fail(message: str, path: tuple[Any, ...], options: _Options) -> NoReturn:
    __tracebackhide__ = True
    message += _at(path)
    if callable(options.msg):
        message = options.msg(message)
    elif options.msg is not None:
        message = options.msg
    raise AssertionError(message)


@dataclass
class _Pair:
    """Two leaves at one path."""

    actual: Any
    expected: Any
    path: tuple[Any, ...]
    options: _Options = field(repr=False)

    @staticmethod
    def accepts(actual: Any, expected: Any, options: _Options) -> bool:
        raise NotImplementedError

    def compare(self) -> None:
        raise NotImplementedError

    def fail(self, message: str) -> NoReturn:
        __tracebackhide__ = True
        _fail(message, self.path, self.options)


class _NonePair(_Pair):
    @staticmethod
    def accepts(actual: Any, expected: Any, options: _Options) -> bool:
        return actual is None or expected is None

    def compare(self) -> None:
        __tracebackhide__ = True
        if self.actual is not self.expected:
            self.fail(f"None mismatch: {self.actual} is not {self.expected}")


class _BooleanPair(_Pair):
    @staticmethod
    def accepts(actual: Any, expected: Any, options: _Options) -> bool:
        return _is_boolean(actual) and _is_boolean(expected)

    def compare(self) -> None:
        __tracebackhide__ = True
        if bool(self.actual) is not bool(self.expected):
            self.fail(f"Booleans mismatch: {bool(self.actual)} is not {bool(self.expected)}")


class _NumberPair(_Pair):
    @staticmethod
    def accepts(actual: Any, expected: Any, options: _Options) -> bool:
        return _is_number(actual) and _is_number(expected)

    def compare(self) -> None:
        __tracebackhide__ = True
        if self.options.check_dtype and type(self.actual) is not type(self.expected):
            self.fail(f"The (d)types do not match: {type(self.actual)} != {type(self.expected)}.")
        actual, expected = _as_python_number(self.actual), _as_python_number(self.expected)
        tolerances = choose_tolerances(
            self.options.rtol, self.options.atol, _number_dtype(self.actual), _number_dtype(self.expected)
        )
        _compare_scalars(self, actual, expected, tolerances)


class _TensorLikePair(_Pair):
    @staticmethod
    def accepts(actual: Any, expected: Any, options: _Options) -> bool:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        same_kind = related if options.allow_subclasses else type(actual) is type(expected)
        return same_kind and _is_tensor_like(actual) and _is_tensor_like(expected)

    def compare(self) -> None:
        __tracebackhide__ = True
        with no_grad():
            actual, expected = as_tensor(self.actual).detach(), as_tensor(self.expected).detach()
            self._check_attributes(actual, expected)
            tolerances = choose_tolerances(self.options.rtol, self.options.atol, actual.dtype, expected.dtype)
            self._check_values(*_bring_to_one_dtype(actual, expected), tolerances)

    def _check_attributes(self, actual: Any, expected: Any) -> None:
        __tracebackhide__ = True
        options = self.options
        checks: list[tuple[bool, str, Any, Any]] = [
            (True, "shape", actual.shape, expected.shape),
            (options.check_layout, "layout", getattr(actual, "layout", None), getattr(expected, "layout", None)),
            (options.check_device, "device", actual.device, expected.device),
            (options.check_dtype, "dtype", actual.dtype, expected.dtype),
            (options.check_stride, "stride()", actual.stride(), expected.stride()),
        ]
        for wanted, name, ours, theirs in checks:
            if wanted and ours != theirs:
                self.fail(f"The values for attribute '{name}' do not match: {ours} != {theirs}.")

    def _check_values(self, actual: Any, expected: Any, tolerances: Tolerances) -> None:
        __tracebackhide__ = True
        matches = find_matches(actual, expected, tolerances, self.options.equal_nan)
        if bool(matches.all()):
            return
        if actual.ndim == 0:
            _compare_scalars(self, actual.item(), expected.item(), tolerances)
        self.fail(_describe_mismatch(actual, expected, matches, tolerances))


def _describe_mismatch(actual: Any, expected: Any, matches: Any, tolerances: Tolerances) -> str:
    total = matches.numel()
    mismatched = total - int(matches.sum().item())
    unmatched = pullback.logical_not(matches)
    absolute = pullback.abs(actual - expected)
    # Where two infinities or zeros agree the quotient is NaN, which would hide the greatest real difference.
    relative = pullback.where(unmatched, absolute / pullback.abs(expected), 0.0)
    absolute = pullback.where(unmatched, absolute, pullback.zeros_like(absolute))
    return "\n".join(
        (
            f"Tensor-likes are not {_goal(tolerances)}!\n",
            f"Mismatched elements: {mismatched} / {total} ({mismatched / total:.1%})",
            f"Greatest absolute difference: {_greatest(absolute)}{_allowed(tolerances, tolerances.atol)}",
            f"Greatest relative difference: {_greatest(relative)}{_allowed(tolerances, tolerances.rtol)}",
        )
    )


def _greatest(difference: Any) -> str:
    flat = difference.reshape(-1)
    position = int(flat.argmax().item())
    value = flat[position].item()
    index = []
    for size in reversed(difference.shape):
        position, remainder = divmod(position, size)
        index.append(remainder)
    return f"{value} at index {tuple(reversed(index))}"


def _compare_scalars(pair: _Pair, actual: Any, expected: Any, tolerances: Tolerances) -> None:
    __tracebackhide__ = True
    if pair.options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    close = cmath.isfinite(difference) and difference <= tolerances.atol + tolerances.rtol * abs(expected)
    if actual == expected or close:
        return
    relative = difference / abs(expected) if expected else float("inf")
    pair.fail(
        f"Scalars are not {_goal(tolerances)}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(tolerances, tolerances.atol)}\n"
        f"Relative difference: {relative}{_allowed(tolerances, tolerances.rtol)}"
    )


def _goal(tolerances: Tolerances) -> str:
    return "equal" if tolerances.ask_for_equality else "close"


def _allowed(tolerances: Tolerances, tolerance: float) -> str:
    return "" if tolerances.ask_for_equality else f" (up to {tolerance} allowed)"


def _bring_to_one_dtype(actual: Any, expected: Any) -> tuple[Any, Any]:
    """Promote both to a dtype in which their difference neither wraps around nor is undefined."""
    dtype = from_numpy_dtype(promote_dtypes(actual.dtype.numpy_dtype, expected.dtype.numpy_dtype))
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = int64
    return actual.to(dtype), expected.to(dtype)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, (bool, numpy_objects.boolean))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, numpy_objects.number))


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or numpy_objects.holds_numbers(value)


def _as_python_number(value: Any) -> Any:
    return value.item() if isinstance(value, numpy_objects.number) else value


def _number_dtype(value: Any) -> Any:
    if isinstance(value, numpy_objects.number):
        return value.dtype.name
    return {bool: "bool", int: "int64", float: "float64", complex: "complex128"}.get(type(value), "float64")
