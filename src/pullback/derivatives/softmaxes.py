"""Rules of kernels/softmaxes.py."""

from __future__ import annotations

from pullback.rules import Dim, Dims, F, Pullback, Tensor, general, self_adjoint, tangent, wrt


@self_adjoint(
    aten="_softmax(input, dim, False)",
    backward="_softmax_backward_data(grad, result, dim, result.dtype)",
    out_dtype="c_types",
    bare=True,
    functional=True,
    takes_minus_inf=True,
    breaks="on empty rows",
)
def softmax(grad: Tensor, input: Tensor, dim: Dim, *, result: Tensor) -> Pullback:
    return wrt(input=F.softmax_backward_data(grad, result, dim))


@self_adjoint(
    aten="_safe_softmax(input, dim)", backward="_softmax_backward_data(grad, result, dim, result.dtype)", out=False
)
def safe_softmax(grad: Tensor, input: Tensor, dim: Dim, *, result: Tensor) -> Pullback:
    return wrt(input=F.softmax_backward_data(grad, result, dim))


@general(
    aten="_log_softmax(input, dim, False)",
    backward="_log_softmax_backward_data(grad, result, dim, result.dtype)",
    out_dtype="c_types",
    bare=True,
    functional=True,
    takes_minus_inf=True,
    breaks="on empty rows",
)
def log_softmax(grad: Tensor, input: Tensor, dim: Dim, *, result: Tensor) -> Pullback:
    return wrt(input=F.log_softmax_backward_data(grad, result, dim))


@tangent
def log_softmax_tangent(input_tangent: Tensor, dim: Dim, *, result: Tensor) -> Tensor:
    return F.log_softmax_push(input_tangent, result, dim)


@general(backward="wrt(input=logsumexp_back(grad, input, result, dim, keepdim))", bare=True, takes_minus_inf=True)
def logsumexp(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.logsumexp_grad(grad, input, result, dim, keepdim))


@tangent
def logsumexp_tangent(input: Tensor, input_tangent: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Tensor:
    return F.logsumexp_push(input, input_tangent, result, dim, keepdim)
