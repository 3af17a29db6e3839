"""Rules of kernels/norms.py."""

from __future__ import annotations

from pullback.rules import Dim, Dims, F, Pullback, Scalar, Tensor, general, wrt


@general(
    backward="wrt(input=norm_back(grad, input, ord, result, dim, keepdim))", out_dtype="c_types", infinite="derivative"
)
def linalg_vector_norm(
    grad: Tensor, input: Tensor, ord: Scalar, dim: Dims, keepdim: bool, *, result: Tensor
) -> Pullback:
    return wrt(input=None if ord == 0 else F.vector_norm_grad(grad, input, ord, dim, keepdim, result))


@general(node="NormBackward1", public="norm", infinite="derivative")
def norm_dim(grad: Tensor, input: Tensor, p: Scalar, dim: Dims, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=None if p == 0 else F.vector_norm_grad(grad, input, p, dim, keepdim, result))


@general(
    backward="wrt(other=distance_back(grad, input, other, p, result, True), "
    "input=distance_back(grad, input, other, p, result, False))",
    found="torch and method",
)
def dist(grad: Tensor, input: Tensor, other: Tensor, p: Scalar, *, result: Tensor) -> Pullback:
    direction = F.vector_norm_grad(grad, input - other, p, None, False, result)
    return wrt(
        input=None if p == 0 else F.sum_to_like(direction, input.shape, input.dtype),
        other=None if p == 0 else F.sum_to_like(-direction, other.shape, other.dtype),
    )


@general(in_place=True, structure="general", out_dtype="c_types", found="torch and method")
def renorm(grad: Tensor, input: Tensor, p: Scalar, dim: Dim, maxnorm: Scalar) -> Pullback:
    return wrt(input=F.renorm_grad(grad, input, p, dim, maxnorm))
