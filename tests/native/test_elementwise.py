"""Every rendered elementwise kernel against its NumPy reference: dtypes, sizes, strides, special values, threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import pullback.native
from pullback import kernels
from pullback.backend.array_module import in_memory_order, order_of_operands
from tests.cases import each_case, named
from tests.native.elementwise_cases import (
    FUSED,
    assert_same,
    call,
    calls,
    compiled,
    rendered_kernels,
    strictly_compiled,
)
from tools.codegen.emit_c import DECLINES_HALVES, ROUNDS_NUMBERS

pytestmark = pytest.mark.skipif(pullback.native.extension is None, reason="the compiled kernels are not built")
every_kernel = each_case(named("name", sorted(rendered_kernels())))
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
BINARY: Any = kernels.mul


def rendered_or_declined(name: str, arguments: list[Any]) -> Any:
    """The compiled answer; None where this variant is the reference's."""
    try:
        return call(strictly_compiled(name), name, arguments)
    except AssertionError:
        return None


@every_kernel
def test_a_kernel_is_compiled_for_some_call(name: str) -> None:
    assert any(rendered_or_declined(name, arguments) is not None for arguments in calls(name, (5,), np.float32))


@every_kernel
@dtypes
def test_a_kernel_computes_what_its_reference_does(name: str, dtype: Any) -> None:
    reference = compiled(name).__wrapped__
    for size in (0, 1, 7, 8, 9, 300, 1000):
        for arguments in calls(name, (size,), dtype, seed=size):
            actual = rendered_or_declined(name, arguments)
            if actual is not None:
                assert_same(name, actual, call(reference, name, arguments))


def special(generator: Any, shape: tuple[int, ...]) -> Any:
    values = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-40,
        -1e-40,
        1e-310,
        3e38,
        -3e38,
        1e300,
        90.0,
        -90.0,
        0.5,
    ]
    return generator.choice(values, shape)


def modest(generator: Any, shape: tuple[int, ...]) -> Any:
    return generator.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 0.5], shape)


@every_kernel
@dtypes
def test_special_values_come_out_as_from_the_reference(name: str, dtype: Any) -> None:
    reference = compiled(name).__wrapped__
    fill = modest if name in FUSED else special
    with np.errstate(all="ignore"):
        for arguments in calls(name, (400,), dtype, fill=fill):
            actual = rendered_or_declined(name, arguments)
            if actual is not None:
                expected = np.asarray(call(reference, name, arguments))
                np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
                np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))


def rearranged(array: Any, how: str) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    if how == "transposed":
        return np.ascontiguousarray(array.T).T
    if how == "gaps":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return np.ascontiguousarray(array[::-1])[::-1]


@every_kernel
@pytest.mark.parametrize("how", ["transposed", "gaps", "reversed"])
def test_strides_do_not_matter(name: str, how: str) -> None:
    reference = compiled(name).__wrapped__
    for shape in ((3, 4, 5), (2, 3, 300)):
        for arguments in calls(name, shape, np.float32)[:2]:
            moved = [rearranged(a, how) for a in arguments]
            actual = rendered_or_declined(name, moved)
            if actual is not None:
                assert_same(name, actual, call(reference, name, moved))


@each_case(named("name", sorted(name for name, kernel in rendered_kernels().items() if kernel.is_line)))
@pytest.mark.parametrize("shape", [(70,), (3, 700), (200, 300)])
def test_an_owned_gradient_is_overwritten_by_the_result(name: str, shape: tuple[int, ...]) -> None:
    for arguments in calls(name, shape, np.float32):
        expected = rendered_or_declined(name, arguments)
        if expected is None or not isinstance(arguments[0], np.ndarray):
            continue
        grad = arguments[0].copy()
        actual = strictly_compiled(name)(grad, *arguments[1:], True)
        np.testing.assert_array_equal(actual, expected)
        if actual is not grad:  # a loop that may go twice over its operands
            np.testing.assert_array_equal(grad, arguments[0])


def test_only_a_gradient_of_the_layout_of_the_result_is_overwritten() -> None:
    line = strictly_compiled("mul_grad_of_input")
    ones, wide = np.ones((20, 30), np.float32), np.ones((5, 20, 30), np.float32)
    assert line(ones, ones + 1, True) is ones
    assert line(ones, ones, False) is not ones
    for grad, other in (
        (ones, wide),
        (ones[:, ::2], ones[:, ::2]),
        (np.broadcast_to(np.float32(1), (20, 30)), ones),
    ):
        before = grad.copy()
        assert line(grad, other * 3, True) is not grad
        np.testing.assert_array_equal(grad, before)
    turned = ones.T
    assert line(turned, np.ones((20, 30), np.float32).T, True) is turned
    read_only = np.ones((20, 30), np.float32)
    read_only.flags.writeable = False
    assert line(read_only, ones, True) is not read_only


def halves() -> list[Any]:
    types: list[Any] = [np.dtype(np.float16)]
    try:
        import ml_dtypes
    except ImportError:
        return types
    return [*types, np.dtype(ml_dtypes.bfloat16)]


@every_kernel
@pytest.mark.parametrize("dtype", halves(), ids=str)
def test_16_bits_are_computed_in_float32_and_rounded_once(name: str, dtype: Any) -> None:
    for shape in ((5,), (3, 1000)):
        for arguments in calls(name, shape, np.float32):
            narrow = [a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype == np.float32 else a for a in arguments]
            wide = [a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == dtype else a for a in narrow]
            if name in ROUNDS_NUMBERS:
                wide = [float(dtype.type(a)) if type(a) is float else a for a in wide]
            expected, actual = rendered_or_declined(name, wide), rendered_or_declined(name, narrow)
            assert (actual is None) == (expected is None or name in DECLINES_HALVES)
            if actual is not None:
                assert actual.dtype == dtype
                with np.errstate(over="ignore"):
                    rounded = expected.astype(dtype)
                np.testing.assert_array_equal(actual.astype(np.float32), rounded.astype(np.float32))


SHAPES = [
    ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (5,)), ((5,), ()), ((1,), (2, 3)), ((2, 3), (1, 1)), ((0, 3), (3,)),
    ((2, 1, 3), (4, 1)), ((70, 3), (3,)), ((70, 3), (70, 1)), ((3, 700), (700,)), ((3, 700), (3, 1)), ((1, 1), (1,)),
    ((2, 2, 2, 2, 2, 2, 2, 2, 3), (2, 1, 2, 1, 2, 1, 3)), ((40, 1, 50), (1, 60, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
@dtypes
def test_shapes_are_broadcast(left: tuple[int, ...], right: tuple[int, ...], dtype: Any) -> None:
    generator = np.random.default_rng(0)
    first, second = (generator.standard_normal(shape).astype(dtype) for shape in (left, right))
    for a, b in ((first, second), (second, first), (first.T, second.T)):
        try:
            product = a * b
        except ValueError:
            continue
        strides = [np.broadcast_to(operand, product.shape).strides for operand in (a, b)]
        expected = in_memory_order(product, order_of_operands(strides, product.shape))
        assert_same("mul", strictly_compiled("mul")(a, b), expected)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40])
@dtypes
def test_short_rows_are_gathered_from_anywhere(length: int, dtype: Any) -> None:
    whole = np.random.default_rng(length).standard_normal((6, 90, 2 * length)).astype(dtype)
    sources = [
        whole[:, :, :length], whole[:, ::2, 1::2], whole[::2, :1, :length], whole[:, :, :1], whole[:1, :, length:],
        whole[:, ::-1, :length], whole[..., ::-2], whole[0, 0, :length],
    ]  # fmt: skip
    for first in sources:
        for second in sources:
            try:
                expected = first * second
            except ValueError:
                continue
            np.testing.assert_array_equal(strictly_compiled("mul")(first, second), expected)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("other", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_result_is_laid_out_as_by_the_reference(order: tuple[int, ...], other: tuple[int, ...]) -> None:
    first = np.arange(60.0).reshape(3, 4, 5).transpose(order)
    second = np.ones(first.shape).transpose(other).transpose(np.argsort(other))
    for a, b in (
        (first, second),
        (second, first),
        (first, 2.0),
        (first[:, ::2], second[:, ::2]),
        (first[:, :1], second),
    ):
        assert_same("mul", strictly_compiled("mul")(a, b), compiled("mul").__wrapped__(a, b))


def test_shapes_that_do_not_fit_raise_as_the_reference_does() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        BINARY(np.ones(3), np.ones(4))


@pytest.mark.parametrize(
    "arguments", [(np.ones(3, np.float16), np.ones(3)), (np.ones(3), np.ones(3, np.float32)), (np.ones(3, ">f8"), 2.0),
                  (np.arange(3), 2), (np.ones(3), 1j), (np.ones(3), True), (np.ones(3) * 1j, 2.0)],
)  # fmt: skip
def test_other_types_are_left_to_the_reference(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(AssertionError, match="left a call"):
        strictly_compiled("mul")(*arguments)
    expected = BINARY.__wrapped__(*arguments)
    np.testing.assert_array_equal(BINARY(*arguments), expected)
    assert BINARY(*arguments).dtype == expected.dtype


@pytest.mark.parametrize("arguments", [(), (np.ones(2),), (np.ones(2), 1.0, 2.0)])
def test_wrong_arguments_raise_as_the_reference_does(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        BINARY(*arguments)
    with pytest.raises(TypeError):
        BINARY(*arguments, nonsense=1)


def test_numpy_scalars_are_taken_as_0_dim_arrays() -> None:
    made = strictly_compiled("mul")(np.ones(3, np.float32), np.float32(2))
    np.testing.assert_array_equal(made, np.full(3, 2, np.float32))
    assert made.dtype == np.float32
    alone = strictly_compiled("mul")(np.float64(3), np.float64(2))
    assert type(alone) is np.ndarray
    assert (alone.shape, alone.item()) == ((), 6.0)


def test_an_argument_may_be_given_by_keyword() -> None:
    add: Any = strictly_compiled("add")
    np.testing.assert_array_equal(add(np.ones(2), other=np.ones(2), alpha=3), [4.0, 4.0])


@every_kernel
def test_the_number_of_threads_does_not_change_the_result(name: str) -> None:
    kernel = compiled(name)
    arguments = calls(name, (40, 1001), np.float32)[0]
    results = []
    for count in (1, 2, 8):
        pullback.native.set_num_threads(count)
        results.append(np.asarray(call(kernel, name, arguments)))
    pullback.native.set_num_threads(1)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_threads_take_parts_of_broadcast_arrays() -> None:
    generator = np.random.default_rng(0)
    for left, right in (((300, 700), (700,)), ((300, 700), (300, 1)), ((70000, 3), (3,)), ((70000, 3), (70000, 1))):
        a, b = generator.standard_normal(left), generator.standard_normal(right)
        pullback.native.set_num_threads(3)
        actual = strictly_compiled("mul")(a, b)
        pullback.native.set_num_threads(1)
        np.testing.assert_array_equal(actual, a * b)


def test_kernels_run_in_several_threads_at_once() -> None:
    numbers = np.linspace(-3, 3, 100_000)
    expected = compiled("exp")(numbers)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(compiled("exp")(numbers), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_large_angles_are_reduced_by_libm() -> None:
    numbers = np.concatenate([np.linspace(-5, 5, 100), [1e7, -3e22, 1e300, np.inf, np.nan]])
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            angles = numbers.astype(dtype)
            for name, reference in (("sin", np.sin), ("cos", np.cos)):
                actual = strictly_compiled(name)(angles)
                np.testing.assert_allclose(
                    actual, reference(angles), rtol=4e-7 if dtype == np.float32 else 1e-15, atol=1e-7
                )


def test_the_comparison_finds_a_wrong_kernel() -> None:
    arguments = calls("sub", (9,), np.float32)[0]
    with pytest.raises(AssertionError):
        assert_same("add", call(compiled("add"), "add", arguments), call(compiled("sub").__wrapped__, "sub", arguments))
    with pytest.raises(AssertionError):
        assert_same("exp", compiled("exp")(np.ones(4)), np.exp(np.ones(4)) * (1 + 1e-13))
