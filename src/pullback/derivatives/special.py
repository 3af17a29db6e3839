"""Rules of kernels/special*.py. Bessel and Airy functions and the polynomials have no derivative in PyTorch."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, non_differentiable, not_implemented, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@elementwise(
    in_place=True,
    promote="float",
    foreach=True,
    found="torch and method",
)
def erf(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.exp(-F.pow_scalar(input, 2)) * 1.1283791670955126 * grad)


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def erfc(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.exp(-F.pow_scalar(input, 2)) * -1.1283791670955126 * grad)


@non_differentiable(structure="elementwise")
def erfcx_slope(input: Tensor, result: Tensor) -> None: ...


@elementwise(promote="float", node="SpecialErfcxBackward0")
def erfcx(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.exactly(2 * input * result - 1.1283791670955126, F.erfcx_slope(input, result)) * grad)


@elementwise(
    in_place=True, promote="float", found="torch and method", found_in_place="method", domain="-1 1", infinite="value"
)
def erfinv(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.erfinv_slope(input) * grad)


@elementwise(promote="float", node="MulBackward1", parts="ndtr_steps(input)", fused="ndtr_node")
def ndtr(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(
        input=F.exp(-F.pow_scalar(input * 0.7071067811865476, 2))
        * 1.1283791670955126
        * (grad * 0.5)
        * 0.7071067811865476
    )


@elementwise(promote="float", node="SpecialLogNdtrBackward0")
def log_ndtr(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad / 2.5066282746310002 * F.exp(-(result + F.pow_scalar(input, 2) / 2)))


@elementwise(promote="float", node="SpecialNdtriBackward0")
def ndtri(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * 2.5066282746310002 * F.exp(F.pow_scalar(result, 2) / 2))


@elementwise(promote="float", node="SpecialEntrBackward0")
def entr(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * -(F.log(input) + 1))


@elementwise(in_place=True, promote="float", domain="0 inf", infinite="derivative", divides_by="other")
def xlogy(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.drop_where(F.logical_and(input == 0, other <= 0), F.xlogy(grad, other)),
        other=grad * input / other,
    )


@elementwise(promote="float", node="SpecialXlog1PyBackward0")
def xlog1py(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.drop_where(F.logical_and(input == 0, other <= -1), F.xlog1py(grad, other)),
        other=grad * input / (other + 1),
    )


@elementwise(
    in_place=True, promote="float", foreach=True, found="torch and method", found_in_place="method", infinite="value"
)
def lgamma(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.digamma(input))


@elementwise(in_place=True, promote="float", found="torch and method", found_in_place="method", infinite="value")
def digamma(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.polygamma(1, input))


@elementwise(promote="float", found="torch and method", renumbered=True)
def polygamma(grad: Tensor, n: int, input: Tensor) -> Pullback:
    return wrt(input=grad * F.polygamma(n + 1, input))


@elementwise(in_place=True, promote="float", found="torch and method")
def mvlgamma(grad: Tensor, input: Tensor, p: int) -> Pullback:
    return wrt(input=grad * F.mvlgamma_slope(input, p))


@elementwise(promote="float", node="SpecialZetaBackward0")
def zeta(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=not_implemented("zeta"), other=-grad * input * F.zeta(F.to_dtype(input, grad.dtype) + 1, other))


@elementwise(in_place=True, promote="float")
def igamma(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=not_implemented("igamma: input"), other=grad * F.gamma_density(F.to_dtype(input, grad.dtype), other)
    )


@elementwise(in_place=True, promote="float")
def igammac(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=not_implemented("igammac: input"), other=-grad * F.gamma_density(F.to_dtype(input, grad.dtype), other)
    )


@elementwise(in_place=True, promote="float", found="torch and method")
def i0(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.i1(input))


@elementwise(promote="float", node="SpecialI0EBackward0")
def i0e(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * (F.i1e(input) - F.sgn(input) * result))


@elementwise(promote="float", node="SpecialI1Backward0")
def i1(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.i1_grad(grad, input, result))


@elementwise(promote="float", node="SpecialI1EBackward0")
def i1e(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.i1e_grad(grad, input, result))


@non_differentiable(promote="float", structure="elementwise")
def airy_ai(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def bessel_j0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def bessel_j1(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def bessel_y0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def bessel_y1(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def spherical_bessel_j0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def modified_bessel_i0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def modified_bessel_i1(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def modified_bessel_k0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def modified_bessel_k1(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def scaled_modified_bessel_k0(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def scaled_modified_bessel_k1(input: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def chebyshev_polynomial_t(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def chebyshev_polynomial_u(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def chebyshev_polynomial_v(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def chebyshev_polynomial_w(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def shifted_chebyshev_polynomial_t(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def shifted_chebyshev_polynomial_u(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def shifted_chebyshev_polynomial_v(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def shifted_chebyshev_polynomial_w(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def hermite_polynomial_h(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def hermite_polynomial_he(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def laguerre_polynomial_l(input: Tensor, n: Tensor) -> None: ...


@non_differentiable(promote="float", structure="elementwise")
def legendre_polynomial_p(input: Tensor, n: Tensor) -> None: ...
