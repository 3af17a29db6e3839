"""assert_close: what it lets pass, and what it says otherwise."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.testing import assert_allclose, assert_close

NAN, INF = float("nan"), float("inf")


def tensor(*values: float, dtype: Any = None) -> Any:
    return pullback.tensor(list(values), dtype=dtype or pullback.float32)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1, 1),
        (1.0, 1.0 + 1e-9),
        (1j, 1j),
        (True, True),
        (None, None),
        (INF, INF),
        ((1, 2.0), [1, 2.0]),
        (OrderedDict(a=1), {"a": 1}),
        (np.ones(2), np.ones(2)),
        (np.float32(1), np.float32(1)),
    ],
)
def test_equal_values_pass(actual: Any, expected: Any) -> None:
    assert_close(actual, expected)


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"),
    [
        ("float16", 9e-4, 3e-3),
        ("bfloat16", 1.5e-2, 3e-2),
        ("float32", 1e-5, 2e-5),
        ("float64", 1.5e-7, 3e-7),
        ("complex64", 1e-5, 2e-5),
        ("complex128", 1.5e-7, 3e-7),
    ],
)
def test_tolerances_depend_on_the_dtype(dtype: str, within: float, beyond: float) -> None:
    kind = getattr(pullback, dtype)
    one = pullback.ones(2, dtype=kind)
    assert_close((one.to(pullback.complex128) + within).to(kind) if kind.is_complex else one + within, one)
    with pytest.raises(AssertionError, match="Tensor-likes are not close!"):
        assert_close(one + beyond, one)


def test_tensors_that_differ_are_described() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(pullback.zeros(2, 3), pullback.arange(6.0).reshape(2, 3))
    assert str(caught.value).splitlines() == [
        "Tensor-likes are not close!",
        "",
        "Mismatched elements: 5 / 6 (83.3%)",
        "Greatest absolute difference: 5.0 at index (1, 2) (up to 1e-05 allowed)",
        "Greatest relative difference: 1.0 at index (0, 1) (up to 1.3e-06 allowed)",
    ]


def test_integers_must_be_equal() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(tensor(1, 2, dtype=pullback.int64), tensor(1, 4, dtype=pullback.int64))
    assert str(caught.value).splitlines() == [
        "Tensor-likes are not equal!",
        "",
        "Mismatched elements: 1 / 2 (50.0%)",
        "Greatest absolute difference: 2 at index (1,)",
        "Greatest relative difference: 0.5 at index (1,)",
    ]


def test_unsigned_differences_do_not_wrap_around() -> None:
    with pytest.raises(AssertionError, match=r"Greatest absolute difference: 255 at index \(0,\)"):
        assert_close(tensor(0, dtype=pullback.uint8), tensor(255, dtype=pullback.uint8))


@pytest.mark.parametrize(("actual", "expected"), [(1.0, 2.0), (pullback.tensor(1.0), pullback.tensor(2.0))])
def test_scalars_that_differ_are_described(actual: Any, expected: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, rtol=0.1, atol=0.2)
    assert str(caught.value).splitlines() == [
        "Scalars are not close!",
        "",
        "Expected 2.0 but got 1.0.",
        "Absolute difference: 1.0 (up to 0.2 allowed)",
        "Relative difference: 0.5 (up to 0.1 allowed)",
    ]


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (1, 2, "Scalars are not equal!"),
        (1, 0, "Relative difference: inf"),
        (True, False, "Booleans mismatch: True is not False"),
        (None, 1, "None mismatch: None is not 1"),
        (1, 1.0, r"The \(d\)types do not match: <class 'int'> != <class 'float'>"),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        (
            {"a": 1, "c": 1},
            {"a": 1, "b": 1},
            r"Missing keys in the actual mapping: \['b'\]\nAdditional keys in the actual mapping: \['c'\]",
        ),
        ({"a": [1, (2,)]}, {"a": [1, (3,)]}, r"The failure occurred for item \['a'\]\[1\]\[0\]"),
    ],
)
def test_what_differs_is_said(actual: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (pullback.zeros(3), pullback.zeros(4), r"attribute 'shape' do not match: .*\[3\]\) != .*\[4\]\)"),
        (pullback.zeros(3), pullback.zeros(3).double(), r"attribute 'dtype' do not match: .*float32 != .*float64"),
        (pullback.zeros(2, 3), pullback.zeros(3, 2).t(), r"attribute 'stride\(\)' do not match: \(3, 1\) != \(1, 2\)"),
    ],
)
def test_attributes_that_differ_are_named(actual: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected, check_stride=True)


def test_checks_can_be_switched_off() -> None:
    assert_close(pullback.ones(3), pullback.ones(3).double(), check_dtype=False)
    assert_close(pullback.ones(2), tensor(1, 1, dtype=pullback.int32), check_dtype=False)
    assert_close(1, 1.0, check_dtype=False)
    assert_close(pullback.zeros(2, 3), pullback.zeros(3, 2).t())


@pytest.mark.parametrize("value", [NAN, pullback.tensor([NAN, 1.0])])
def test_nan_equals_nan_only_if_asked(value: Any) -> None:
    assert_close(value, value, equal_nan=True)
    with pytest.raises(AssertionError, match="nan"):
        assert_close(value, value)


def test_infinities_equal_only_themselves() -> None:
    assert_close(tensor(INF, -INF), tensor(INF, -INF))
    with pytest.raises(AssertionError, match=r"Mismatched elements: 2 / 2"):
        assert_close(tensor(INF, 1.0), tensor(-INF, INF))


def test_matching_zeros_do_not_hide_the_greatest_relative_difference() -> None:
    with pytest.raises(AssertionError, match=r"Greatest relative difference: 0.5 at index \(1,\)"):
        assert_close(tensor(0.0, 1.0), tensor(0.0, 2.0))


def test_empty_tensors_are_close() -> None:
    assert_close(pullback.zeros(0, 3), pullback.zeros(0, 3))


def test_gradients_do_not_matter() -> None:
    parameter = pullback.ones(2, requires_grad=True)
    assert_close(parameter, pullback.ones(2))
    assert_close(parameter * 2, pullback.full((2,), 2.0))


@pytest.mark.parametrize(("msg", "expected"), [("mine", "mine"), (lambda text: "seen: " + text[:6], "seen: Tensor")])
def test_the_message_can_be_replaced(msg: Any, expected: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close([pullback.zeros(1)], [pullback.ones(1)], msg=msg)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("actual", "expected"),
    [("a", "a"), (1.0, pullback.tensor(1.0)), (np.zeros(2), pullback.zeros(2)), ({1}, {1}), (object(), object())],
)
def test_what_cannot_be_compared_is_refused(actual: Any, expected: Any) -> None:
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(actual, expected)


def test_subclasses_are_accepted_unless_refused() -> None:
    class Special(pullback.Tensor):
        pass

    special = pullback.ones(2).as_subclass(Special)
    assert_close(special, pullback.ones(2))
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(special, pullback.ones(2), allow_subclasses=False)


@pytest.mark.parametrize(("name", "missing"), [("rtol", "atol"), ("atol", "rtol")])
def test_both_tolerances_or_none(name: str, missing: str) -> None:
    with pytest.raises(ValueError, match=f"must be either specified or omitted, but got no {missing}"):
        assert_close(1.0, 1.0, **{name: 0.1})  # type: ignore[arg-type]


def test_negative_tolerances_are_refused() -> None:
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -1"):
        assert_close(1.0, 1.0, rtol=-1, atol=0)


def test_the_old_function_warns_and_compares() -> None:
    with pytest.warns(FutureWarning, match="is deprecated"):
        assert_allclose(pullback.ones(2), pullback.ones(2).double())
