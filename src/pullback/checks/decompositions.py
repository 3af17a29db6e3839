"""What the kernels of kernels/decompositions.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.matrices import refuse_half, require_floating, require_matrix, require_square
from pullback.typing import Array


def _check_svd(A: Array) -> None:
    require_matrix("linalg.svd", A)
    require_floating("linalg.svd", A)
    refuse_half(A, "linalg_svd_cpu")


def linalg_cholesky_ex(A: Array, *, upper: bool = False, check_errors: bool = False) -> None:
    require_square("linalg.cholesky", A)
    require_floating("linalg.cholesky", A)


def cholesky(input: Array, upper: bool = False) -> None:
    if input.size:  # as in PyTorch, what has no elements is its own factor
        require_square("cholesky", input)


def linalg_qr(A: Array, mode: str = "reduced") -> None:
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")  # fmt: skip
    require_matrix("linalg.qr", A)
    require_floating("linalg.qr", A)
    refuse_half(A, "geqrf_cpu")


def geqrf(input: Array) -> None:
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    refuse_half(input, "geqrf_cpu")


def linalg_svd(A: Array, full_matrices: bool = True, *, driver: str | None = None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    _check_svd(A)


def singular_values(A: Array) -> None:
    _check_svd(A)


def linalg_eigh(A: Array, UPLO: str = "L") -> None:
    require_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    refuse_half(A, "linalg_eigh_cpu")


def hermitian_eigenvalues(A: Array, UPLO: str = "L") -> None:
    linalg_eigh(A, UPLO)


def linalg_eig(A: Array) -> None:
    _check_eig("linalg.eig", A)


def eigenvalues(A: Array) -> None:
    _check_eig("linalg.eigvals", A)


def _check_eig(function: str, A: Array) -> None:
    require_square(function, A)
    if A.dtype.kind in "biu":
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_type_name(A.dtype)}")
    refuse_half(A, "linalg_eig_out_cpu")
