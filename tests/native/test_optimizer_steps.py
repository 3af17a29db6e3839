"""Compiled steps of optimizers against the NumPy ones, in place, over options, sizes, layouts and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import optimizer_steps

kernels: Any = optimizer_steps

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

SGD = {"lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False}
MOMENTS = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "maximize": False}
ADAM = MOMENTS | {"shrink": 1.0, "root_correction": 0.05, "step_size": 0.03}
NADAM = MOMENTS | {"shrink": 1.0, "correction": 0.003, "of_grad": 0.01, "of_momentum": 0.02}
RADAM = MOMENTS | {"lr": 0.01, "shrink": 1.0, "correction": 0.3, "root_correction": 0.05, "rectification": 0.7}
ADAMAX = MOMENTS | {"step_size": 0.03}
RMSPROP = {"lr": 0.01, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.9, "maximize": False}
ADAGRAD = {"lr": 0.01, "eps": 1e-10, "weight_decay": 0.0, "maximize": False}
ADADELTA = {"lr": 0.5, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0, "maximize": False}
ASGD = {"eta": 0.01, "mu": 0.25, "lambd": 0.1, "weight_decay": 0.0, "maximize": False}
RPROP = {"shrink": 0.5, "grow": 1.2, "smallest": 0.1, "largest": 35.0, "maximize": False}
DECAY: tuple[dict[str, Any], ...] = ({}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "maximize": True})

# The step, how many arrays are required and how many more are optional, and its numbers.
STEPS: list[tuple[str, int, int, dict[str, Any]]] = [
    *[
        ("sgd_step", 2, 1, SGD | {"is_first": is_first} | options)
        for is_first in (False, True)
        for options in ({}, {"dampening": 0.5, "weight_decay": 0.1}, {"nesterov": True}, {"maximize": True, "lr": 1})
    ],
    *[("adam_step", 4, 1, ADAM | options) for options in (*DECAY, {"shrink": 0.9})],
    *[("nadam_step", 4, 0, NADAM | options) for options in (*DECAY, {"shrink": 0.9})],
    *[
        ("radam_step", 4, 0, RADAM | {"is_rectified": is_rectified} | options)
        for is_rectified in (True, False)
        for options in (*DECAY, {"shrink": 0.9})
    ],
    *[("adamax_step", 4, 0, ADAMAX | options) for options in DECAY],
    *[
        ("rmsprop_step", 3, 2, RMSPROP | options)
        for options in ({}, {"weight_decay": 0.1}, {"maximize": True, "momentum": 0})
    ],
    *[("adagrad_step", 3, 0, ADAGRAD | options) for options in DECAY],
    *[("adadelta_step", 4, 0, ADADELTA | options) for options in DECAY],
    *[("asgd_step", 3, 0, ASGD | options) for options in (*DECAY, {"mu": 1}, {"mu": 1.0, "weight_decay": 0.1})],
    *[("rprop_step", 4, 0, RPROP | options) for options in ({}, {"maximize": True})],
]


def random_arrays(count: int, shape: tuple[int, ...], dtype: str) -> list[Any]:
    generator = np.random.default_rng(0)
    arrays = [np.asarray(generator.standard_normal(shape), dtype) for _ in range(count)]
    # States that are averages of squares are not negative, and no smaller than the square of a mean. (What Rprop keeps of
    # the last gradient has either sign elsewhere: see the special values.)
    return [*arrays[:2], *[np.asarray(np.abs(array) + 30, dtype) for array in arrays[2:4]], *arrays[4:]]


def assert_same_step(name: str, arrays: list[Any], numbers: dict[str, Any], copies: list[Any]) -> None:
    kernel = getattr(kernels, name)
    assert kernel([arrays], **numbers) is None
    kernel.__wrapped__([copies], **numbers)
    for actual, expected in zip(arrays, copies, strict=True):
        if actual is not None:
            tolerance = 8 * np.finfo(actual.dtype).eps
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def copied(arrays: list[Any]) -> list[Any]:
    return [None if array is None else array.copy(order="K") for array in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "required", "optional", "numbers"), STEPS)
def test_steps_equal_the_reference(
    name: str, required: int, optional: int, numbers: dict[str, Any], dtype: str
) -> None:
    for shape in ((), (0,), (1,), (7,), (3, 3), (1000,), (40000,)):
        for given in range(optional + 1):
            arrays = [*random_arrays(required + given, shape, dtype), *[None] * (optional - given)]
            assert_same_step(name, arrays, numbers, copied(arrays))


@pytest.mark.parametrize(("name", "required", "optional", "numbers"), STEPS)
def test_layouts_give_the_same_bits(name: str, required: int, optional: int, numbers: dict[str, Any]) -> None:
    plain = random_arrays(required, (6, 5), "float32")
    strided = [np.zeros((12, 10), "float32")[::2, ::2] for _ in plain]
    fortran = [np.asfortranarray(array) for array in plain]
    mixed = [array.copy() for array in plain]
    mixed[1] = np.asfortranarray(mixed[1])
    for to, source in zip(strided, plain, strict=True):
        to[...] = source
    getattr(kernels, name)([plain], **numbers)
    for others in (strided, fortran, mixed):
        getattr(kernels, name)([others], **numbers)
        for actual, expected in zip(others, plain, strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_nan_infinity_and_zero_weight_decay() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1.0], "float32")
    param, grad = np.tile(special, 7), np.repeat(special, 7)
    for name, required, optional, numbers in STEPS:
        states = [np.abs(np.tile(special, 7)[::-1]).copy() for _ in range(required - 2 + optional)]
        arrays = [param.copy(), grad.copy(), *states]
        copies = copied(arrays)
        with np.errstate(all="ignore"):
            assert_same_step(name, arrays, numbers, copies)


def test_an_array_may_be_its_own_gradient() -> None:
    param = np.arange(100, dtype="float64")
    kernels.sgd_step([[param, param]], **SGD, is_first=False)
    np.testing.assert_allclose(param, 0.9 * np.arange(100))


def test_what_cannot_be_written_is_refused_as_by_the_reference() -> None:
    param = np.ones(3)
    param.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernels.sgd_step([[param, np.ones(3)]], **SGD, is_first=False)
    with pytest.raises(TypeError):
        kernels.sgd_step([[np.ones(3), np.ones(3)]])
    with pytest.raises(ValueError, match="broadcast"):
        kernels.sgd_step([[np.ones(3), np.ones(4)]], **SGD, is_first=False)


def test_threads_do_not_change_a_bit() -> None:
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            arrays = random_arrays(4, (300001,), "float32")
            kernels.adam_step([arrays], **ADAM)
            results.append(arrays)
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("name", "required", "optional", "numbers"), STEPS)
def test_many_rows_are_each_stepped_alike(name: str, required: int, optional: int, numbers: dict[str, Any]) -> None:
    rows = [
        random_arrays(required, shape, "float32")
        for shape in ((), (0,), (5,), (2, 3), (2100,), (20000,), (7,), (100, 400), (1,))
    ]
    copies = [copied(row) for row in rows]
    alone = [copied(row) for row in rows]
    getattr(kernels, name)(rows, **numbers)
    getattr(kernels, name).__wrapped__(copies, **numbers)
    for row, reference, single in zip(rows, copies, alone, strict=True):
        getattr(kernels, name)([single], **numbers)
        for actual, expected, bits in zip(row, reference, single, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(actual, bits)


def test_a_row_given_twice_is_stepped_twice_on_any_number_of_threads() -> None:
    grad = np.ones(300001)
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            param = np.zeros(300001)
            kernels.sgd_step([[param, grad], [param, grad]], **SGD, is_first=False)
            np.testing.assert_allclose(param, np.full(300001, -0.2))
    finally:
        native.set_num_threads(native.usable_threads())


def test_signs_of_rprop_agree_differ_or_are_zero() -> None:
    for dtype in ("float32", "float64"):
        row = [np.asarray(values, dtype) for values in ([1.0] * 4, [1, 1, 1, np.nan], [2, -2, 0, 1], [1.0] * 4)]
        kernels.rprop_step([row], **RPROP)
        np.testing.assert_allclose(row[0], [1 - 1.2, 1, 0, 1], rtol=1e-6)
        np.testing.assert_allclose(row[2], [1, 0, 1, np.nan])
        np.testing.assert_allclose(row[3], [1.2, 0.5, 1, 1], rtol=1e-6)


def test_float16_and_uneven_rows_are_left_to_the_reference() -> None:
    row = [np.ones(3, "float16"), np.ones(3, "float16")]
    kernels.sgd_step([row], **SGD, is_first=False)
    np.testing.assert_allclose(row[0], 0.9, rtol=1e-3)
    rows = [[np.ones(3), np.ones(3)], [np.ones(3), np.ones(3), np.ones(3)]]
    kernels.sgd_step(rows, **SGD, is_first=False)
    np.testing.assert_allclose(rows[0][0], 0.9)
    np.testing.assert_allclose(rows[1][0], 0.81)
