"""New tensors: dtypes inferred as PyTorch infers them, memory orders, ranges, refused values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "float32"),
        ([True, False], "bool"),
        (1 + 2j, "complex64"),
        ([], "float32"),
        (np.float64(1), "float64"),
        ([np.float32(1), 2], "float32"),
        (np.array([1], np.int16), "int16"),
        ([pullback.tensor(1.0), 2], "float32"),
    ],
)
def test_dtype_is_inferred(data: Any, dtype: str) -> None:
    assert pullback.tensor(data).dtype is getattr(pullback, dtype)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pullback.tensor([[1], [1, 2]]), ValueError, "expected sequence of length 1 at dim 1"),
        (lambda: pullback.tensor(2**70), ValueError, "Overflow when unpacking long long"),
        (lambda: pullback.tensor("a"), TypeError, "invalid data type 'str'"),
        (lambda: pullback.tensor([1], requires_grad=True), RuntimeError, "Only Tensors of floating point"),
        (lambda: pullback.zeros(2, -1), RuntimeError, "Dimension size must be non-negative"),
        (lambda: pullback.ones(2.5), TypeError, "must be tuple of ints, not float"),
        (lambda: pullback.full((1,), 300, dtype=pullback.uint8), RuntimeError, "without overflow"),
        (lambda: pullback.arange(1, 5, -1), RuntimeError, "inconsistent with step sign"),
        (lambda: pullback.arange(float("inf")), RuntimeError, "unsupported range"),
        (lambda: pullback.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: pullback.eye(-1), RuntimeError, "n must be greater or equal to 0"),
        (lambda: pullback.zeros(2, foo=1), TypeError, "unexpected keyword argument 'foo'"),
        (lambda: pullback.from_numpy(np.ones(2)[::-1]), ValueError, "negative"),
    ],
)
def test_impossible_tensor_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: pullback.arange(0.5, 2, 0.5), [0.5, 1.0, 1.5]),
        (lambda: pullback.arange(5, 1, -2), [5, 3]),
        (lambda: pullback.arange(2.7, dtype=pullback.int64), [0, 1]),
        (lambda: pullback.linspace(0, 10, 5), [0.0, 2.5, 5.0, 7.5, 10.0]),
        (lambda: pullback.linspace(0, 5, 4, dtype=pullback.int64), [0, 1, 3, 5]),
        (lambda: pullback.logspace(0, 3, 4, base=2), [1.0, 2.0, 4.0, 8.0]),
        (lambda: pullback.tril_indices(2, 3), [[0, 1, 1], [0, 0, 1]]),
        (lambda: pullback.eye(2, 3, dtype=pullback.int64), [[1, 0, 0], [0, 1, 0]]),
        (lambda: pullback.full((2,), True), [True, True]),
        (lambda: pullback.tensor(-1, dtype=pullback.uint8), 255),
    ],
)
def test_values(made: Any, expected: Any) -> None:
    assert made().tolist() == expected


@pytest.mark.parametrize(
    ("source", "stride"),
    [
        (pullback.zeros(2, 3).t(), (1, 3)),
        (pullback.zeros(1, 3).expand(2, 3), (3, 1)),
        (pullback.zeros(4, 6)[::2, ::2], (3, 1)),
        (pullback.zeros(2, 3, 4).permute(2, 0, 1), (1, 12, 4)),
    ],
)
def test_like_functions_keep_the_memory_order(source: Any, stride: tuple[int, ...]) -> None:
    assert pullback.zeros_like(source).stride() == stride
    assert source.clone().stride() == stride


def test_channels_last_is_a_memory_order() -> None:
    tensor = pullback.zeros(2, 3, 4, 5).to(memory_format=pullback.channels_last)
    assert tensor.stride() == (60, 1, 15, 3)
    assert tensor.is_contiguous(memory_format=pullback.channels_last)


def test_new_tensors_have_the_dtype_of_their_source() -> None:
    source = pullback.zeros(1, dtype=pullback.int8)
    assert source.new_ones(2).dtype is source.new_tensor([1]).dtype is source.new_full((1,), 3).dtype is pullback.int8


def test_as_tensor_returns_a_fitting_tensor_itself() -> None:
    tensor = pullback.ones(2)
    assert pullback.as_tensor(tensor) is tensor
    assert pullback.asarray(tensor, copy=True) is not tensor


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([np.int32(1), 2.5], "float32"),
        ([2, np.float64(1)], "float64"),
        ([np.float32(1), np.float64(2)], "float64"),
        ([np.int32(1), 2], "int64"),
        ([np.float16(1), 2.5], "float32"),
        ([[1, 2], (3, np.float64(4))], "float64"),
        ([np.int8(1)], "int8"),
    ],
)
def test_numbers_of_numpy_promote_with_those_of_python(values: Any, dtype: str) -> None:
    made = pullback.tensor(values)
    assert made.dtype is getattr(pullback, dtype)
    assert made.reshape(-1)[-1].item() == np.ravel(values)[-1]
