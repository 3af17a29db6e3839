"""Rules of kernels/decompositions.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, non_differentiable, not_implemented, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    outputs=("L", "info"),
    differentiable=(True, False),
    structure="matrices",
    autocast="float32",
    out_dtype="c_types",
    returns=True,
)
def linalg_cholesky_ex(grad: Tensor, A: Tensor, upper: bool, *, L: Tensor) -> Pullback:
    return wrt(A=F.cholesky_back(grad, L, upper))


@tangent
def linalg_cholesky_ex_tangent(A_tangent: Tensor, upper: bool, *, L: Tensor) -> Tensor:
    return (F.cholesky_forward(A_tangent, L, upper), None)


@general(structure="matrices", autocast="float32", found="torch and method")
def cholesky(grad: Tensor, input: Tensor, upper: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.cholesky_back(grad, result, upper))


@tangent
def cholesky_tangent(input_tangent: Tensor, upper: bool, *, result: Tensor) -> Tensor:
    return F.cholesky_forward(input_tangent, result, upper)


@general(outputs=("Q", "R"), structure="matrices", autocast="float32", out_dtype="c_types", returns=True)
def linalg_qr(grad_Q: Tensor, grad_R: Tensor, A: Tensor, mode: str, *, Q: Tensor, R: Tensor) -> Pullback:
    return wrt(A=F.qr_back(grad_Q, grad_R, Q, R, mode))


@general(outputs=("a", "tau"), structure="matrices", autocast="float32", returns=True)
def geqrf(grad_a: Tensor, grad_tau: Tensor, input: Tensor) -> Pullback:
    return wrt(input=not_implemented("geqrf"))


@general(
    outputs=("U", "S", "Vh"),
    aten="_linalg_svd(A, full_matrices)",
    structure="matrices",
    shows="full_matrices",
    autocast="float32",
    out_dtype="c_types",
    returns=True,
    breaks="on equal singular values",
)
def linalg_svd(
    grad_U: Tensor, grad_S: Tensor, grad_Vh: Tensor, A: Tensor, *, U: Tensor, S: Tensor, Vh: Tensor
) -> Pullback:
    return wrt(A=F.svd_back(grad_U, grad_S, grad_Vh, U, S, Vh))


@general(
    outputs=("eigenvalues", "eigenvectors"),
    aten="_linalg_eigh(A, UPLO)",
    structure="matrices",
    autocast="float32",
    out_dtype="c_types",
    returns=True,
    breaks="on equal eigenvalues",
)
def linalg_eigh(
    grad_eigenvalues: Tensor, grad_eigenvectors: Tensor, A: Tensor, *, eigenvalues: Tensor, eigenvectors: Tensor
) -> Pullback:
    return wrt(A=F.eigh_back(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors))


@tangent
def linalg_eigh_tangent(A_tangent: Tensor, *, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor:
    return F.eigh_forward(A_tangent, eigenvalues, eigenvectors)


@general(
    outputs=("eigenvalues", "eigenvectors"),
    structure="matrices",
    autocast="float32",
    returns=True,
    breaks="on equal eigenvalues",
)
def linalg_eig(
    grad_eigenvalues: Tensor, grad_eigenvectors: Tensor, A: Tensor, *, eigenvalues: Tensor, eigenvectors: Tensor
) -> Pullback:
    back = F.eig_back(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors)
    return wrt(A=F.to_dtype(back, A.dtype))


@non_differentiable(out=False, structure="matrices")
def singular_values(A: Tensor) -> None: ...


@non_differentiable(out=False, structure="matrices")
def hermitian_eigenvalues(A: Tensor, UPLO: str) -> None: ...


@non_differentiable(out=False, structure="matrices")
def eigenvalues(A: Tensor) -> None: ...


@non_differentiable(out=False, structure="matrices")
def identity_like(input: Tensor) -> None: ...
