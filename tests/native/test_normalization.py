"""The compiled normalizations against their NumPy references, and against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import normalization
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

ROWS = pytest.mark.parametrize("shape", [(3, 3), (5, 7), (4, 8), (2, 9), (70, 33), (300, 128), (2, 40000), (2, 3, 20)])
IMAGES = pytest.mark.parametrize("shape", [(4, 6), (64, 70), (2, 6, 5), (3, 4, 9, 11), (5, 2, 40, 40), (300, 4)])
AFFINE = pytest.mark.parametrize("affine", ["both", "weight", "bias", "none"])


def affine_arrays(affine: str, size: int, dtype: Any) -> tuple[Any, Any]:
    """A weight and a bias, or None where there is none."""
    weight = normal((size,), dtype, 1) if affine in ("both", "weight") else None
    return weight, normal((size,), dtype, 2) if affine in ("both", "bias") else None


@dtypes
@ROWS
@AFFINE
def test_layer_norm(affine: str, shape: tuple[int, ...], dtype: Any) -> None:
    weight, bias = affine_arrays(affine, shape[-1], dtype)
    assert_as_reference(
        normalization.native_layer_norm, normal(shape, dtype), shape[-1:], weight, bias, 1e-5, tolerance=50
    )


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e30), (np.float64, 1e200)])
def test_a_variance_that_overflows_is_seen(dtype: Any, large: float) -> None:
    rows = np.array([[large, 1, 2], [1, 2, 3]], dtype)
    result, _, rstd = normalization.native_layer_norm(rows, (3,), None, None, 1e-5)
    assert np.isnan(result[0]).all()
    assert np.isnan(rstd[0]).all()
    assert np.isfinite(result[1]).all()


@dtypes
@ROWS
@AFFINE
def test_layer_norm_back(affine: str, shape: tuple[int, ...], dtype: Any) -> None:
    values, grad = normal(shape, dtype), normal(shape, dtype, 3)
    weight, _ = affine_arrays(affine, shape[-1], dtype)
    _, mean, rstd = normalization.native_layer_norm(values, shape[-1:], weight, None, 1e-5)
    assert_as_reference(
        normalization.layer_norm_back, grad, values, mean, rstd, weight, shape[-1:], 1e-5, tolerance=400
    )


@dtypes
@ROWS
@AFFINE
@pytest.mark.parametrize("eps", [None, 1e-6])
def test_rms_norm(eps: float | None, affine: str, shape: tuple[int, ...], dtype: Any) -> None:
    values, grad = normal(shape, dtype), normal(shape, dtype, 3)
    weight, _ = affine_arrays(affine, shape[-1], dtype)
    assert_as_reference(normalization.rms_norm_fused, values, shape[-1:], weight, eps, tolerance=50)
    assert_as_reference(normalization.rms_norm_back, grad, values, shape[-1:], weight, eps, tolerance=400)


@dtypes
def test_rows_of_several_dimensions(dtype: Any) -> None:
    values, weight = normal((2, 3, 4, 5), dtype), normal((4, 5), dtype, 1)
    result = assert_as_reference(normalization.native_layer_norm, values, (4, 5), weight, weight, 1e-5, tolerance=50)
    assert result[1].shape == (2, 3, 1, 1)
    arguments = (values, values, result[1], result[2], weight, (4, 5), 1e-5)
    assert_as_reference(normalization.layer_norm_back, *arguments, tolerance=200)


@dtypes
@IMAGES
@AFFINE
def test_batch_norm(affine: str, shape: tuple[int, ...], dtype: Any) -> None:
    values, grad = normal(shape, dtype), normal(shape, dtype, 3)
    weight, bias = affine_arrays(affine, shape[1], dtype)
    result = assert_as_reference(normalization.batch_norm_training, values, weight, bias, 1e-5, tolerance=50)
    arguments = (grad, values, result[1], result[2], weight, 1e-5)
    assert_as_reference(normalization.batch_norm_training_back, *arguments, tolerance=300)


@dtypes
@IMAGES
@AFFINE
@pytest.mark.parametrize("group", [1, 2])
def test_group_norm(group: int, affine: str, shape: tuple[int, ...], dtype: Any) -> None:
    values, grad = normal(shape, dtype), normal(shape, dtype, 3)
    weight, bias = affine_arrays(affine, shape[1], dtype)
    sizes = (shape[0], shape[1], values.size // (shape[0] * shape[1]), group)
    result = assert_as_reference(normalization.native_group_norm, values, weight, bias, *sizes, 1e-5, tolerance=50)
    arguments = (grad, values, result[1], result[2], weight, group, 1e-5)
    assert_as_reference(normalization.group_norm_back, *arguments, tolerance=1000)


@dtypes
@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_memory(layout: str, dtype: Any) -> None:
    values, grad = layouts(normal((4, 6, 8), dtype))[layout], layouts(normal((4, 6, 8), dtype, 3))[layout]
    rows = assert_as_reference(normalization.native_layer_norm, values, (8,), None, None, 1e-5, tolerance=50)
    assert_as_reference(normalization.layer_norm_back, grad, values, rows[1], rows[2], None, (8,), 1e-5, tolerance=200)
    batch = assert_as_reference(normalization.batch_norm_training, values, None, None, 1e-5, tolerance=50)
    arguments = (grad, values, batch[1], batch[2], None, 1e-5)
    assert_as_reference(normalization.batch_norm_training_back, *arguments, tolerance=200)


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("shape", [(64, 128), (8, 1000), (2, 100_000)])
def test_layer_norm_in_float32_is_near_float64(shape: tuple[int, ...], offset: float) -> None:
    values = normal(shape, np.float64) + offset
    exact = normalization.native_layer_norm(values.astype(np.float32).astype(np.float64), shape[-1:], None, None, 1e-5)
    single = normalization.native_layer_norm(values.astype(np.float32), shape[-1:], None, None, 1e-5)
    bound = 2e-7 * (5 + offset)
    np.testing.assert_allclose(single[0], exact[0], rtol=0, atol=bound)
    np.testing.assert_allclose(single[1], exact[1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(single[2], exact[2], rtol=1e-6)


@dtypes
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_stay_in_their_row(special: float, dtype: Any) -> None:
    values = normal((3, 40), dtype)
    values[1, 5] = special
    with np.errstate(all="ignore"):
        assert_as_reference(normalization.native_layer_norm, values, (40,), None, None, 1e-5, tolerance=50)
        assert_as_reference(normalization.batch_norm_training, values, None, None, 1e-5, tolerance=50)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("native_layer_norm", (np.ones((2, 3), np.float16), (3,), None, None, 1e-5)),
        ("native_layer_norm", (np.ones((2, 3), np.float32), (2,), None, None, 1e-5)),
        ("native_layer_norm", (np.ones((2, 3), np.float32), (3,), np.ones(3), None, 1e-5)),
        ("native_layer_norm", (np.ones((0, 3), np.float32), (3,), None, None, 1e-5)),
        ("batch_norm_training", (np.ones(3, np.float32), None, None, 1e-5)),
        ("batch_norm_training", (np.ones((2, 3), np.float32), np.ones(2, np.float32), None, 1e-5)),
        ("native_group_norm", (np.ones((2, 3), np.float32), None, None, 2, 3, 1, 2, 1e-5)),
    ],
)
def test_what_is_left_to_the_reference(name: str, arguments: tuple[Any, ...]) -> None:
    assert declines(getattr(normalization, name), *arguments)


@dtypes
@pytest.mark.parametrize("threads", [2, 8])
def test_threads_do_not_change_the_result(threads: int, dtype: Any) -> None:
    values, grad, weight = normal((600, 200), dtype), normal((600, 200), dtype, 3), normal((200,), dtype, 1)

    def everything() -> list[Any]:
        rows = normalization.native_layer_norm(values, (200,), weight, weight, 1e-5)
        back = normalization.layer_norm_back(grad, values, rows[1], rows[2], weight, (200,), 1e-5)
        images, image_grad = values.reshape(60, 10, 200), grad.reshape(60, 10, 200)
        batch = normalization.batch_norm_training(images, None, None, 1e-5)
        batch_back = normalization.batch_norm_training_back(image_grad, images, batch[1], batch[2], None, 1e-5)
        group = normalization.native_group_norm(images, None, None, 60, 10, 200, 5, 1e-5)
        group_back = normalization.group_norm_back(image_grad, images, group[1], group[2], None, 5, 1e-5)
        return [*rows, *back, *batch, *batch_back, *group, *group_back]

    for actual, expected in zip(with_threads(threads, everything), with_threads(1, everything), strict=True):
        np.testing.assert_array_equal(actual, expected)
