"""Gradients of parts: each added where it belongs, with the values that filling up with zeros gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.engine.input_buffer import InputBuffer
from pullback.graph.partial_gradient import PartialGradient
from pullback.kernels import add_part, place_part

PLACES = [
    (0, 0, 0),
    (2, 0, 0),
    (-1, 0, 0),
    (0, 3, 1),
    (1, 9, 1),
    (0, 4, 2),
    (1, 4, 2),
    (2, 2, 1),
    (-2, 9, 1),
    (3, 1, 1),
]


def index_of(dim: int, start: int, end: int, step: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, slice(start, end, step) if step else start)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", [(4, 4, 4), (4, 50, 4), (50, 4, 40), (4, 40, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_a_part_is_placed_and_added(shape: tuple[int, ...], place: tuple[int, int, int], dim: int, dtype: Any) -> None:
    if place[2] == 0 and not -shape[dim] <= place[0] < shape[dim]:
        pytest.skip("no such position")
    generator = np.random.default_rng(0)
    before = generator.standard_normal(shape).astype(dtype)
    part = generator.standard_normal(before[index_of(dim, *place)].shape).astype(dtype)
    expected = np.zeros(shape, dtype)
    expected[index_of(dim, *place)] = part
    for given in (part, np.asfortranarray(part)):
        np.testing.assert_array_equal(place_part(given, shape, dim, *place), expected)
        whole = before.copy()
        assert add_part(whole, given, dim, *place, True) is whole
        np.testing.assert_array_equal(whole, before + expected)


def test_a_part_that_does_not_fit_is_refused() -> None:
    for shape in ((3,), (2, 2)):
        with pytest.raises(ValueError, match="broadcast"):
            place_part(np.ones(shape, np.float32), (4, 5), 0, 1, 0, 0)


def test_the_buffer_adds_parts_to_the_array_it_owns() -> None:
    buffer = InputBuffer(1)
    for position in (0, 2, 2):
        buffer.add(0, PartialGradient(np.full(2, 3.0), (4, 2), 0, position, 0, 0), True)
        if position == 0:
            first = buffer.grads[0]
    assert buffer.grads[0] is first
    assert first.tolist() == [[3, 3], [0, 0], [6, 6], [0, 0]]


def test_the_buffer_does_not_add_parts_to_an_array_of_others() -> None:
    borrowed = np.ones((4, 2))
    buffer = InputBuffer(1)
    buffer.add(0, borrowed, False)
    buffer.add(0, PartialGradient(np.full(2, 3.0), (4, 2), 0, 1, 0, 0), True)
    assert borrowed.tolist() == [[1, 1]] * 4
    assert buffer.grads[0].tolist() == [[1, 1], [4, 4], [1, 1], [1, 1]]


@pytest.mark.parametrize("hooked", [False, True])
def test_rows_read_one_by_one_get_their_gradients(hooked: bool) -> None:
    x = pullback.arange(12.0).reshape(4, 3).requires_grad_()
    y = x * 2
    if hooked:
        y.register_hook(lambda grad: grad)
    total = sum((nr + 1) * y[nr].sum() for nr in range(4)) + y[1:3, ::2].sum() + y.sum()
    total.backward()
    assert x.grad.tolist() == [[4, 4, 4], [8, 6, 8], [10, 8, 10], [10, 10, 10]]


def test_zeros_lose_their_sign_as_where_zeros_are_added() -> None:
    x = pullback.ones(3, requires_grad=True)
    (x[0] * -0.0 + x[1] * 2.0).backward()
    assert [math.copysign(1, value) for value in x.grad.tolist()] == [1, 1, 1]
    x.grad = None
    (x[0] * -0.0).backward()
    assert math.copysign(1, x.grad[0].item()) == -1
