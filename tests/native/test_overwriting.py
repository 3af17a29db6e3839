"""Every compiled form that writes into its first argument against the kernel it is made of."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import arithmetic, trigonometric
from pullback.kernels.overwriting import overwriting, write_value

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

FAMILIES = (
    "activation", "arithmetic", "clamping", "complex_numbers", "exponential", "linear_interpolation", "rounding", "signs",
    "special",
    "trigonometric",
)  # fmt: skip
FORMS = [
    (family, name.removesuffix("_overwriting"))
    for family in FAMILIES
    for name in vars(import_module(f"pullback.generated.{family}"))
    if name.endswith("_overwriting")
]


def arguments_of(kernel: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Arrays and numbers that every kernel is defined for."""
    generator = np.random.default_rng(0)
    given: list[Any] = []
    for parameter in inspect.signature(getattr(kernel, "__wrapped__", kernel)).parameters.values():
        if str(parameter.annotation) == "Array":
            given.append(generator.uniform(0.1, 0.9, shape).astype(dtype))
        else:
            given.append(0.4 if parameter.default is parameter.empty else parameter.default)
    return given


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("family", "name"), FORMS)
def test_forms_equal_their_kernels(family: str, name: str, dtype: str) -> None:
    module = import_module(f"pullback.generated.{family}")
    form, kernel = getattr(module, f"{name}_overwriting"), getattr(module, f"{name}_kernel")
    for shape in ((), (1,), (7,), (16,), (10, 10), (1030,), (3, 700)):
        given = arguments_of(kernel, shape, dtype)
        keywords = [
            p.name
            for p in inspect.signature(getattr(kernel, "__wrapped__", kernel)).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        ]
        positional = given[: len(given) - len(keywords)]
        expected = kernel(*positional, **dict(zip(keywords, given[len(positional) :], strict=True)))
        if expected.dtype != given[0].dtype:
            continue
        assert form(*given)
        np.testing.assert_allclose(given[0], expected, rtol=2 * np.finfo(dtype).eps)


def test_what_does_not_fit_is_left_untouched() -> None:
    form = overwriting(arithmetic.mul)
    target = np.ones((3, 4), "float32")
    for other in (np.full(3, 2, "float32"), np.full((3, 4), 2.0), np.full((4, 3), 2, "float32").T[:, ::-1][:2]):
        assert not form(target, other)
    assert not form(target[0], target)
    assert not form(np.ones((4, 3), "float32").T, 2.0)
    assert not form(np.ones(3, "int64"), 2)
    assert not form(np.broadcast_to(np.float32(1), (3,)), 2.0)
    assert (target == 1).all()
    assert form(target, np.asarray(2, "float32"))
    assert form(target, np.full((3, 4), 2, "float32"))
    assert form(target, np.array([1, 2, 1, 2], "float32"))
    assert (target == [4, 8, 4, 8]).all()


def test_operands_in_the_target_are_read_before_they_are_written() -> None:
    memory = np.arange(5000, dtype="float64")
    form = overwriting(arithmetic.add)
    for target, other in ((memory[1:], memory[:-1]), (memory[:-1], memory[1:]), (memory, memory)):
        expected = target + other
        if not form(target, other):
            target += other
        np.testing.assert_array_equal(target, expected)
    first = memory[:1].copy()
    expected = memory + memory[0]
    if not form(memory, memory[:1].reshape(())):
        memory += first
    np.testing.assert_array_equal(memory, expected)


def test_large_angles_are_computed_from_the_operand_not_from_the_result() -> None:
    values = np.linspace(-1e30, 1e30, 4001, dtype="float32")
    expected = trigonometric.sin(values)
    assert overwriting(trigonometric.sin)(values)
    np.testing.assert_array_equal(values, expected)


def test_threads_do_not_change_a_bit() -> None:
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            given = arguments_of(arithmetic.addcmul, (300001,), "float32")
            assert overwriting(arithmetic.addcmul)(*given[:3], 0.3)
            results.append(given[0])
    finally:
        native.set_num_threads(native.usable_threads())
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_values_are_written() -> None:
    target = np.zeros((2, 3), "float32")
    assert write_value(target, 2)
    assert (target == 2).all()
    assert write_value(target, np.arange(6, dtype="float32").reshape(2, 3))
    assert target.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert write_value(target, np.asarray(7, "float32"))
    assert (target == 7).all()
    assert not write_value(target, 1e300)
    assert not write_value(target, np.zeros(3, "float32"))
    assert (target == 7).all()
    memory = np.arange(10.0)
    assert write_value(memory[1:], memory[:-1])
    assert memory.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
