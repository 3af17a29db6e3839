"""The sign of complex numbers, which is computed otherwise where none of them is zero."""

from __future__ import annotations

import pytest

import pullback


@pytest.mark.parametrize("dtype", [pullback.complex64, pullback.complex128])
def test_the_sign_of_a_complex_number_does_not_depend_on_zeros_beside_it(dtype: pullback.dtype) -> None:
    values = pullback.tensor([3 + 4j, -5j, 1e-30 + 1e-30j, 7], dtype=dtype)
    alone, beside = pullback.sgn(values), pullback.sgn(pullback.cat([values, values.new_zeros(1)]))
    assert beside[:-1].tolist() == alone.tolist()
    assert beside[-1].item() == 0
    assert alone[:2].tolist() == pytest.approx([0.6 + 0.8j, -1j], rel=1e-6)


def test_the_sign_of_an_infinite_complex_number_is_not_a_number() -> None:
    found = pullback.sgn(pullback.tensor([complex(float("inf"), 1)]))
    assert found.isnan().all()


def test_the_sign_of_no_complex_numbers_is_none() -> None:
    assert pullback.sgn(pullback.zeros(0, dtype=pullback.complex64)).tolist() == []
