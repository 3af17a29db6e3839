"""Rules of kernels/gamma_gradients.py: samples that move with their parameters."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, not_implemented, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(node="StandardGammaBackward0", out=False, draws="parameters")
def standard_gamma(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.standard_gamma_grad(input, result))


@tangent
def standard_gamma_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return input_tangent * F.standard_gamma_grad(input, result)


@general(node="StandardGammaGradBackward0", out=False, structure="elementwise")
def standard_gamma_grad(grad: Tensor, input: Tensor, output: Tensor) -> Pullback:
    return wrt(
        input=not_implemented("_standard_gamma_grad"),
        output=not_implemented("_standard_gamma_grad"),
    )


@general(out=False, draws="parameters")
def sample_dirichlet(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=not_implemented("aten::_sample_dirichlet"))


@general(out=False, structure="elementwise")
def dirichlet_grad(grad: Tensor, input: Tensor, alpha: Tensor, total: Tensor) -> Pullback:
    return wrt(
        input=not_implemented("aten::_dirichlet_grad"),
        alpha=not_implemented("aten::_dirichlet_grad"),
        total=not_implemented("aten::_dirichlet_grad"),
    )
