"""Rules of kernels/complex_numbers.py. Most are linear over the reals only, so their tangents are written out."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, tangent, wrt


@elementwise(promote="float", found="torch and method")
def angle(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.angle_grad(grad, input))


@elementwise(in_place=True, out_dtype="found", renumbered=True)
def conj_physical(grad: Tensor) -> Pullback:
    return wrt(input=F.conj_physical(grad))


@tangent
def conj_physical_tangent(input_tangent: Tensor) -> Tensor:
    return F.conj_physical(input_tangent)


@elementwise(autocast="float32", out_dtype="for_object")
def polar(grad: Tensor, abs: Tensor, angle: Tensor, *, result: Tensor) -> Pullback:
    return wrt(
        abs=F.real_part(F.conj(grad) * F.sgn(result)),
        angle=F.real_part(F.conj(grad) * (result * 1j)),
    )


@tangent
def polar_tangent(angle: Tensor, abs_tangent: Tensor, angle_tangent: Tensor, *, result: Tensor) -> Tensor:
    return abs_tangent * F.sgn_of_angle(angle) + result * 1j * angle_tangent


@elementwise(out_dtype="for_object", complex32=True)
def complex(grad: Tensor, real: Tensor, imag: Tensor) -> Pullback:
    return wrt(real=F.real_part(grad), imag=F.imaginary_part(grad))


@tangent
def complex_tangent(real_tangent: Tensor, imag_tangent: Tensor) -> Tensor:
    return F.complex(real_tangent, imag_tangent)
