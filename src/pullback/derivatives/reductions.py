"""Rules of kernels/reductions.py."""

from __future__ import annotations

from pullback.rules import Dim, Dims, F, Pullback, Tensor, general, linear, non_differentiable, tangent, wrt


@linear(node="SumBackward0", public="sum", backward="expand(grad, input.shape)")
def sum_all(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.expand_reduced(F.to_dtype(grad, input.dtype), input.shape, None, False))


@linear(node="SumBackward1", out_dtype="c_types", asks=True, bare=True, masked_reduction=True)
def sum(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool) -> Pullback:
    return wrt(input=F.expand_reduced(F.to_dtype(grad, input.dtype), input.shape, dim, keepdim))


@linear(node="MeanBackward0", public="mean", breaks="as a mean")
def mean_all(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.mean_grad(F.to_dtype(grad, input.dtype), input.shape, None, False))


@linear(node="MeanBackward1", asks=True, bare=True, quantized=True, masked_reduction=True, breaks="as a mean")
def mean(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool) -> Pullback:
    return wrt(input=F.mean_grad(F.to_dtype(grad, input.dtype), input.shape, dim, keepdim))


@general(node="ProdBackward0", public="prod", autocast="float32", backward="prod_back(grad, input, result)")
def prod_all(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.prod_all_grad(grad, input, result))


@general(
    node="ProdBackward1",
    autocast="float32",
    out_dtype="c_types",
    masked_reduction=True,
    backward="prod_along_back(grad, input, result, dim, keepdim)",
)
def prod(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.prod_grad(grad, input, result, dim, keepdim))


@general(out_dtype="c_types")
def nansum(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool) -> Pullback:
    return wrt(input=F.expand_reduced(F.to_dtype(grad, input.dtype), input.shape, dim, keepdim) * F.not_nan(input))


@tangent
def nansum_tangent(input: Tensor, input_tangent: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Tensor:
    return F.sum(F.to_dtype(F.where(F.isnan(input), 0, input_tangent), result.dtype), dim, keepdim)


@non_differentiable(structure="elementwise")
def not_nan(input: Tensor) -> None: ...


@non_differentiable
def count_not_nan(input: Tensor, dim: Dims, keepdim: bool) -> None: ...


@non_differentiable(out=False, gives="positions", found="torch and method")
def count_nonzero(input: Tensor, dim: Dims) -> None: ...


@non_differentiable(found="torch and method")
def any(input: Tensor, dim: Dims, keepdim: bool) -> None: ...


@non_differentiable(found="torch and method")
def all(input: Tensor, dim: Dims, keepdim: bool) -> None: ...
