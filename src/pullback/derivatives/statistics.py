"""Rules of kernels/statistics.py."""

from __future__ import annotations

from pullback.rules import Dims, F, Pullback, Tensor, general, wrt


@general(
    aten="var(input, dim, correction=None if dim is None and correction == 1 else correction, keepdim=keepdim)",
    backward="wrt(input=var_back(grad, input, dim, correction, keepdim))",
    masked_reduction=True,
    breaks="on single elements",
)
def var(grad: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Pullback:
    return wrt(input=F.var_grad(grad, input, dim, correction, keepdim))


@general(
    aten="std(input, dim, correction=None if dim is None and correction == 1 else correction, keepdim=keepdim)",
    backward="wrt(input=std_back(grad, input, result, dim, correction, keepdim))",
    masked_reduction=True,
    infinite="derivative",
    breaks="on single elements",
)
def std(grad: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.var_grad(F.div_or_zero(grad, result * 2), input, dim, correction, keepdim))


@general(outputs=("variance", "mean"), out=False, breaks="on single elements")
def var_mean(
    grad_variance: Tensor, grad_mean: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool
) -> Pullback:
    return wrt(
        input=F.var_grad(grad_variance, input, dim, correction, keepdim)
        + F.mean_grad(grad_mean, input.shape, dim, keepdim)
    )


@general(outputs=("deviation", "mean"), out=False, breaks="on single elements")
def std_mean(
    grad_deviation: Tensor, grad_mean: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool,
    *, deviation: Tensor,
) -> Pullback:  # fmt: skip
    return wrt(
        input=F.var_grad(F.div_or_zero(grad_deviation, deviation * 2), input, dim, correction, keepdim)
        + F.mean_grad(grad_mean, input.shape, dim, keepdim)
    )
