"""The compiled convolutions against their NumPy references."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from pullback.kernels import convolutions
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = [needs_extension, pytest.mark.usefixtures("instruction_set")]

convolution: Any = convolutions.convolution
convolution_grad_weight: Any = convolutions.convolution_grad_weight

# batch, channels, out_channels, groups, sizes, kernel, stride, padding, dilation
CASES = {
    "rows of whole vectors": (2, 5, 9, 1, (6, 32), (3, 3), (1, 1), (1, 1), (1, 1)),
    "rows that overlap": (2, 3, 8, 1, (5, 45), (3, 3), (1, 1), (1, 1), (1, 1)),
    "short rows": (3, 6, 16, 1, (14, 14), (5, 5), (1, 1), (0, 0), (1, 1)),
    "rows shorter than a vector": (2, 4, 5, 1, (9, 3), (3, 3), (1, 1), (1, 1), (1, 1)),
    "in place": (2, 4, 3, 1, (7, 40), (3, 2), (1, 1), (0, 0), (1, 1)),
    "one element": (1, 1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one by one": (2, 17, 11, 1, (9, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one by one with steps": (2, 8, 12, 1, (30, 41), (1, 1), (2, 3), (0, 0), (1, 1)),
    "steps": (2, 4, 7, 1, (20, 37), (3, 3), (2, 2), (1, 1), (1, 1)),
    "steps beyond the kernel": (2, 4, 6, 1, (20, 37), (2, 2), (3, 5), (1, 0), (1, 1)),
    "unequal steps": (1, 3, 2, 1, (18, 70), (4, 5), (1, 3), (3, 2), (1, 1)),
    "steps in one dimension": (3, 5, 8, 1, (10, 10), (4, 2), (3, 1), (0, 0), (1, 1)),
    "tiny planes": (37, 20, 24, 1, (3, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    "tiny planes with steps": (19, 8, 30, 2, (5, 5), (3, 3), (2, 2), (1, 1), (1, 1)),
    "windows as large as the plane": (21, 9, 40, 1, (5, 5), (5, 5), (1, 1), (0, 0), (1, 1)),
    "many channels of one element": (50, 300, 33, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "fewer transposed results than steps": (2, 6, 6, 3, (19, 2), (5, 5), (1, 2), (2, 3), (1, 1)),
    "dilated": (2, 3, 10, 1, (20, 40), (3, 3), (1, 1), (2, 2), (2, 3)),
    "dilated with steps": (2, 3, 4, 1, (20, 40), (3, 3), (2, 3), (2, 2), (3, 2)),
    "much padding": (1, 2, 3, 1, (3, 4), (3, 3), (1, 1), (5, 9), (1, 1)),
    "groups": (2, 12, 9, 3, (10, 33), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one channel each": (2, 20, 20, 20, (17, 19), (3, 3), (1, 1), (1, 1), (1, 1)),
    "two filters for a channel": (2, 7, 14, 7, (17, 19), (3, 3), (2, 2), (1, 1), (1, 1)),
    "many channels": (2, 200, 18, 1, (8, 18), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many boxes": (1, 64, 3, 1, (200, 50), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one dimension": (2, 5, 6, 1, (100,), (7,), (1,), (3,), (1,)),
    "one long dimension": (1, 64, 4, 1, (5000,), (5,), (2,), (3,), (2,)),
    "three dimensions": (2, 3, 5, 1, (5, 6, 19), (3, 2, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "three dimensions with steps": (2, 4, 6, 2, (9, 8, 21), (3, 3, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1)),
    "planes of one element": (9, 12, 10, 1, (1, 1), (4, 5), (1, 1), (2, 2), (1, 1)),
    "small planes with steps": (5, 7, 40, 1, (6, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    "small planes with much padding": (5, 7, 40, 1, (5, 5), (5, 5), (1, 1), (2, 2), (1, 1)),
    "small dilated planes": (5, 7, 40, 1, (9, 8), (3, 3), (1, 2), (3, 3), (3, 2)),
    "squares": (2, 32, 24, 1, (12, 38), (3, 3), (1, 1), (1, 1), (1, 1)),
    "squares at odd edges": (3, 33, 25, 1, (13, 41), (3, 3), (1, 1), (0, 2), (1, 1)),
    "narrow squares": (9, 24, 40, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    "narrow squares at odd edges": (7, 70, 18, 1, (7, 9), (3, 3), (1, 1), (2, 1), (1, 1)),
    "squares of groups": (2, 48, 64, 2, (10, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many squares": (3, 24, 24, 1, (90, 80), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one filter each": (3, 9, 9, 9, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one filter each on small planes": (2, 10, 10, 10, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one filter each with steps": (2, 6, 6, 6, (15, 50), (3, 3), (2, 2), (1, 1), (1, 1)),
    "one filter each of five with steps": (2, 6, 6, 6, (28, 27), (5, 5), (2, 2), (2, 2), (1, 1)),
    "one filter each of seven": (2, 3, 3, 3, (9, 40), (7, 7), (1, 1), (3, 3), (1, 1)),
    "one dilated filter each": (2, 5, 5, 5, (19, 23), (3, 5), (1, 2), (2, 3), (2, 2)),
    "one filter each with much padding": (2, 5, 5, 5, (9, 12), (3, 3), (2, 2), (2, 2), (1, 1)),
    "one filter each without padding": (2, 5, 5, 5, (19, 24), (3, 3), (2, 2), (0, 0), (1, 1)),
    "one long filter each": (2, 4, 4, 4, (100,), (31,), (1,), (15,), (1,)),
    "one long filter each with steps": (2, 4, 4, 4, (101,), (5,), (2,), (1,), (1,)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def arrays(case: Any, dtype: Any, transposed: bool = False) -> tuple[Any, Any, Any]:
    batch, channels, out_channels, groups, sizes, kernel = case[:6]
    pair = (channels, out_channels // groups) if transposed else (out_channels, channels // groups)
    return (
        normal((batch, channels, *sizes), dtype),
        normal((*pair, *kernel), dtype, seed=1),
        normal((out_channels,), dtype, seed=2),
    )


def forward(case: Any) -> tuple[Any, ...]:
    """The arguments after the bias."""
    return (*case[6:9], False, (0,) * len(case[4]), case[3])


@dtypes
@cases
def test_convolution(case: Any, dtype: Any) -> None:
    x, weight, bias = arrays(case, dtype)
    assert_as_reference(convolution, x, weight, bias, *forward(case), tolerance=64)
    assert_as_reference(convolution, x, weight, None, *forward(case), tolerance=64)


@dtypes
@cases
def test_transposed_convolution(case: Any, dtype: Any) -> None:
    x, weight, bias = arrays(case, dtype, transposed=True)
    stride, padding, dilation = case[6:9]
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, k, s, p, d in zip(case[4], case[5], stride, padding, dilation, strict=True)
    ]
    if min(sizes) < 1:
        pytest.skip("the padding takes everything away")
    extra = tuple(s - 1 for s in stride)
    for output_padding in {extra, (0,) * len(extra)}:
        arguments = (x, weight, bias, stride, padding, dilation, True, output_padding, case[3])
        assert_as_reference(convolution, *arguments, tolerance=64)


@dtypes
@pytest.mark.parametrize("kernel", [(4, 4), (1, 1), (3, 5)])
@pytest.mark.parametrize("batch", [1, 9])
def test_planes_of_one_element_are_spread(batch: int, kernel: tuple[int, int], dtype: Any) -> None:
    x, weight, bias = normal((batch, 12, 1, 1), dtype), normal((12, 10, *kernel), dtype, 1), normal((10,), dtype, 2)
    for given in (bias, None):
        arguments = (x, weight, given, (1, 1), (0, 0), (1, 1), True, (0, 0), 1)
        assert_as_reference(convolution, *arguments, tolerance=64)


@dtypes
@cases
def test_gradient_of_the_weight(case: Any, dtype: Any) -> None:
    x, weight, _ = arrays(case, dtype)
    grad = normal(convolution.__wrapped__(x, weight, None, *forward(case)).shape, dtype, seed=3)
    assert_as_reference(convolution_grad_weight, x, grad, weight.shape, *case[6:9], case[3], tolerance=64)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    case = CASES["rows that overlap"]
    x, weight, bias = arrays(case, np.float32)
    expected = convolution(x, weight, bias, *forward(case))
    grad = normal(expected.shape, np.float32, seed=3)
    weighed = convolution_grad_weight(x, grad, weight.shape, *case[6:9], case[3])
    x, weight, bias, grad = (layouts(array)[layout] for array in (x, weight, bias, grad))
    np.testing.assert_array_equal(convolution(x, weight, bias, *forward(case)), expected)
    np.testing.assert_array_equal(convolution_grad_weight(x, grad, weight.shape, *case[6:9], case[3]), weighed)


def test_broadcast_gradient() -> None:
    x = normal((2, 3, 9, 20), np.float32)
    grad = np.broadcast_to(np.float32(1), (2, 4, 9, 20))
    assert_as_reference(convolution_grad_weight, x, grad, (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1, tolerance=64)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sizes", [(6, 32), (6, 45), (14, 14), (9, 3)])
def test_values_that_are_not_finite_stay_where_they_belong(sizes: tuple[int, int], value: float) -> None:
    x, weight = normal((2, 2, *sizes), np.float32), normal((3, 2, 3, 3), np.float32, seed=1)
    grad = normal((2, 3, *sizes), np.float32, seed=2)
    steps = ((1, 1), (1, 1), (1, 1))
    for place in [(0, 0), (2, sizes[1] - 1), (sizes[0] - 1, 0)]:
        changed, changed_grad = x.copy(), grad.copy()
        changed[(1, 0, *place)] = value
        changed_grad[(0, 1, *place)] = value
        assert_as_reference(convolution, changed, weight, None, *steps, False, (0, 0), 1, tolerance=64)
        assert_as_reference(convolution_grad_weight, changed, grad, weight.shape, *steps, 1, tolerance=64)
        assert_as_reference(convolution_grad_weight, x, changed_grad, weight.shape, *steps, 1, tolerance=64)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("sizes", [(8, 40), (6, 6)])
def test_squares_do_not_spread_what_is_not_finite(sizes: tuple[int, int], value: float) -> None:
    x, weight = normal((4, 24, *sizes), np.float32), normal((24, 24, 3, 3), np.float32, seed=1)
    grad = normal(x.shape, np.float32, seed=2)
    x[1, 3, 2, 4] = value
    steps = ((1, 1), (1, 1), (1, 1))
    assert_as_reference(convolution, x, weight / 64, None, *steps, False, (0, 0), 1, tolerance=256)
    assert_as_reference(convolution, x, weight / 64, None, *steps, True, (0, 0), 1, tolerance=256)
    assert_as_reference(convolution_grad_weight, x, grad / 64, weight.shape, *steps, 1, tolerance=256)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("sizes", [(8, 40), (7, 7), (6, 17)])
def test_one_filter_each_does_not_spread_what_is_not_finite(sizes: tuple[int, int], stride: int, value: float) -> None:
    x, weight = normal((2, 3, *sizes), np.float32), normal((3, 1, 3, 3), np.float32, seed=1)
    steps = ((stride, stride), (0, 0), (1, 1))
    for place in [(0, 0), (2, sizes[1] - 1), (sizes[0] - 1, 0), (sizes[0] - 1, sizes[1] - 1)]:
        changed = x.copy()
        changed[(1, 1, *place)] = value
        result = assert_as_reference(convolution, changed, weight, None, *steps, False, (0, 0), 3, tolerance=64)
        grad = normal(result.shape, np.float32, seed=2)
        assert_as_reference(convolution, changed, weight, None, *steps, True, (0, 0), 3, tolerance=64)
        assert_as_reference(convolution_grad_weight, changed, grad, weight.shape, *steps, 3, tolerance=64)


@pytest.mark.parametrize("channels", [32, 64, 256])
def test_squares_round_no_worse_than_direct_sums(channels: int) -> None:
    x, weight = normal((4, channels, 8, 8), np.float32), normal((32, channels, 3, 3), np.float32, seed=1)
    rest = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    expected = convolution.__wrapped__(x.astype(np.float64), weight.astype(np.float64), None, *rest)
    one_by_one = np.zeros(expected.shape, np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for c in range(channels):
        for tap in range(9):
            part = padded[:, c, None, tap // 3 : tap // 3 + 8, tap % 3 : tap % 3 + 8]
            one_by_one += part * weight[None, :, c, tap // 3, tap % 3, None, None]
    error = np.sqrt(np.mean((convolution(x, weight, None, *rest) - expected) ** 2))
    assert error < np.sqrt(np.mean((one_by_one - expected) ** 2))


@pytest.mark.parametrize(
    "name",
    [
        "many channels",
        "groups",
        "many boxes",
        "one long dimension",
        "steps",
        "tiny planes",
        "many squares",
        "narrow squares",
        "squares of groups",
        "one filter each",
    ],
)
def test_threads_change_nothing(name: str) -> None:
    case = CASES[name]
    x, weight, bias = arrays(case, np.float32)
    expected = convolution(x, weight, bias, *forward(case))
    grad = normal(expected.shape, np.float32, seed=3)
    weighed = convolution_grad_weight(x, grad, weight.shape, *case[6:9], case[3])
    for count in (2, 8):
        np.testing.assert_array_equal(with_threads(count, convolution, x, weight, bias, *forward(case)), expected)
        actual = with_threads(count, convolution_grad_weight, x, grad, weight.shape, *case[6:9], case[3])
        np.testing.assert_array_equal(actual, weighed)


def test_threads_of_python_convolve_at_once() -> None:
    case = CASES["many channels"]
    x, weight, bias = arrays(case, np.float32)
    expected = convolution(x, weight, bias, *forward(case))
    results: list[Any] = [None] * 4

    def work(place: int) -> None:
        results[place] = convolution(x, weight, bias, *forward(case))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_what_the_reference_serves() -> None:
    case = CASES["short rows"]
    x, weight, bias = arrays(case, np.float32)
    rest = forward(case)
    assert not declines(convolution, x, weight, bias, *rest)
    assert declines(convolution, x.astype(np.float16), weight.astype(np.float16), None, *rest)
    assert declines(convolution, x.astype(np.float64), weight, bias, *rest)
    assert declines(convolution, x.astype(np.complex64), weight.astype(np.complex64), None, *rest)
    assert declines(convolution, x[:0], weight, bias, *rest)
    assert declines(convolution, x, weight[:, :2], bias, *rest)
    assert declines(convolution, x, weight, bias[:3], *rest)
    assert declines(convolution, x, weight, bias, (1,), *rest[1:])
    assert declines(convolution, x, weight, bias, (0, 1), *rest[1:])
    assert declines(convolution, x[:, :, :3], weight, bias, *rest)


def test_arguments_by_keyword() -> None:
    case = CASES["short rows"]
    x, weight, bias = arrays(case, np.float32)
    stride, padding, dilation, transposed, output_padding, groups = forward(case)
    actual = convolution(
        x, weight, bias, stride, padding=padding, dilation=dilation, transposed=transposed,
        output_padding=output_padding, groups=groups,
    )  # fmt: skip
    np.testing.assert_array_equal(actual, convolution(x, weight, bias, *forward(case)))
