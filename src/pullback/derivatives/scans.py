"""Rules of kernels/scans.py."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Tensor, general, linear, tangent, wrt


@linear(in_place=True, backward="wrt(input=cumsum_back(grad, dim))", out_dtype="c_types")
def cumsum(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.reversed_cumsum(F.to_dtype(grad, input.dtype), dim))


@general(in_place=True, out_dtype="c_types")
def cumprod(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.cumprod_grad(F.to_dtype(grad, input.dtype), input, dim))


@general(outputs=("values", "indices"), differentiable=(True, False), gives="positions", returns=True)
def cummax(grad: Tensor, input: Tensor, dim: Dim, *, indices: Tensor) -> Pullback:
    return wrt(input=F.add_along(grad, indices, input.shape, dim))


@tangent
def cummax_tangent(input_tangent: Tensor, dim: Dim, *, indices: Tensor) -> Tensor:
    return (F.take_along(input_tangent, indices, dim), None)


@general(outputs=("values", "indices"), differentiable=(True, False), gives="positions", returns=True)
def cummin(grad: Tensor, input: Tensor, dim: Dim, *, indices: Tensor) -> Pullback:
    return wrt(input=F.add_along(grad, indices, input.shape, dim))


@tangent
def cummin_tangent(input_tangent: Tensor, dim: Dim, *, indices: Tensor) -> Tensor:
    return (F.take_along(input_tangent, indices, dim), None)


@general(out_dtype="scalar_type", found="torch and method")
def logcumsumexp(grad: Tensor, input: Tensor, dim: Dim, *, result: Tensor) -> Pullback:
    return wrt(input=F.logcumsumexp_grad(grad, input, result, dim))
