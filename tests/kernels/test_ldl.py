"""Stacks of systems solved from LDL factorizations whose pivots differ."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.backend import lapack
from pullback.kernels import ldl
from pullback.typing import DType

if lapack._library() is None:
    pytest.importorskip("scipy")


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_stack_of_systems_is_solved(size: int, dtype: DType, hermitian: bool) -> None:
    source = np.random.default_rng(0)
    A = source.normal(size=(2, 5, size, size)) + 1j * source.normal(size=(2, 5, size, size))
    A = A if dtype is np.complex128 else A.real
    A = A + (A.conj() if hermitian else A).swapaxes(-1, -2)
    if size > 1:
        A[0, 1:, range(size), range(size)] = 0  # blocks of two
    B = source.normal(size=(5, size, 3)).astype(dtype)
    factors, pivots, _ = ldl.linalg_ldl_factor_ex(A, hermitian=hermitian)
    assert size == 1 or ((pivots < 0).any() and (pivots > 0).any())
    np.testing.assert_allclose(
        A @ ldl.linalg_ldl_solve(factors, pivots, B, hermitian=hermitian),
        np.broadcast_to(B, (2, 5, size, 3)),
        atol=1e-9,
    )
