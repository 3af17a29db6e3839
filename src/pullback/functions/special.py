"""Special functions: overloads that take a number in place of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import result_dtype, scalar_type_name
from pullback.facts import declare
from pullback.functions.view_copies import apart
from pullback.graph.in_place import in_place
from pullback.tensor.arguments import number_beside
from pullback.tensor.tensor import Tensor, TensorBase


def _pair(function: Callable[..., Any], first: Any, second: Any, out: Any, node: str = "") -> Any:
    """Call a function of two tensors, one of which may be a number: the name of a node tells which."""
    result = function(_float_beside(first, second), _float_beside(second, first), out=out)
    if not node or out is not None or not result.requires_grad:
        return result
    if isinstance(first, TensorBase) and isinstance(second, TensorBase):
        return result
    return apart(result, f"{node}{2 if isinstance(first, TensorBase) else 1}")


def _float_beside(value: Any, other: Any) -> Any:
    """As `number_beside`; beside integers a number keeps its value, since both become floats."""
    if isinstance(other, TensorBase) and other._array.dtype.kind in "biu" and type(value) is int:
        value = float(value)
    return number_beside(value, other)


@declare(found="torch and method")
def xlogy(input: Any, other: Any, *, out: Any = None) -> Any:
    """Compute input * log(other), and 0 where input is 0 unless other is nan.

    Both are broadcast together; one of the two may be a number.

    >>> import pullback
    >>> pullback.xlogy(pullback.tensor([0.0, 2.0]), pullback.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return _pair(G.xlogy, input, other, out, "XlogyBackward")


@declare(found="torch and method")
def xlogy_(input: Tensor, other: Any) -> Any:
    """In-place version of xlogy."""
    return in_place(xlogy, input, other)


def xlog1py(input: Any, other: Any, *, out: Any = None) -> Any:
    """Compute input * log1p(other), and 0 where input is 0 unless other is nan.

    Both are broadcast together; one of the two may be a number.

    >>> import pullback
    >>> pullback.special.xlog1py(pullback.tensor([0.0, 2.0]), 0.0)
    tensor([0., 0.])
    """
    return _pair(G.xlog1py, input, other, out, "SpecialXlog1PyBackward")


def zeta(input: Any, other: Any, *, out: Any = None) -> Any:
    """Compute the Hurwitz zeta function, the sum over k of (other + k)**-input.

    Both are broadcast together; one of the two may be a number. zeta(x, 1) is Riemann's.

    >>> import pullback
    >>> pullback.special.zeta(pullback.tensor([2.0]), 1.0)
    tensor([1.6449])
    """
    return _pair(G.zeta, input, other, out, "SpecialZetaBackward")


@declare(found="torch and method")
def igamma(input: Tensor, other: Tensor, *, out: Any = None) -> Any:
    """Compute the lower regularised incomplete gamma function.

    Both are broadcast together. y = the integral of t ** (a - 1) * exp(-t) from 0 to x / gamma(a), for a = input, x = other.

    >>> import pullback
    >>> pullback.special.gammainc(pullback.tensor([1.0]), pullback.tensor([0.0]))
    tensor([0.])
    """
    _refuse_integers("igamma_cpu", input, other)
    return G.igamma(input, other, out=out)


@declare(found="torch and method")
def igammac(input: Tensor, other: Tensor, *, out: Any = None) -> Any:
    """Compute the upper regularised incomplete gamma function.

    Both are broadcast together. y = 1 - gammainc(input, other), accurate where that is tiny.

    >>> import pullback
    >>> pullback.special.gammaincc(pullback.tensor([1.0]), pullback.tensor([0.0]))
    tensor([1.])
    """
    _refuse_integers("igammac_cpu", input, other)
    return G.igammac(input, other, out=out)


def _refuse_integers(function: str, input: Any, other: Any) -> None:
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return
    common = result_dtype((input._array, other._array))
    if common.kind in "biu":
        raise NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(common)}'")


def method_polygamma(input: Tensor, n: int) -> Any:
    """Compute the n-th derivative of digamma."""
    return G.polygamma(n, input)


@declare(found="method")
def polygamma_(input: Tensor, n: int) -> Any:
    """In-place version of polygamma."""
    return in_place(method_polygamma, input, n)


def chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the first kind of degree n."""
    return _pair(G.chebyshev_polynomial_t, input, n, out)


def chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the second kind of degree n."""
    return _pair(G.chebyshev_polynomial_u, input, n, out)


def chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the third kind of degree n."""
    return _pair(G.chebyshev_polynomial_v, input, n, out)


def chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the fourth kind of degree n."""
    return _pair(G.chebyshev_polynomial_w, input, n, out)


def shifted_chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the first kind of degree n at 2 * input - 1."""
    return _pair(G.shifted_chebyshev_polynomial_t, input, n, out)


def shifted_chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the second kind of degree n at 2 * input - 1."""
    return _pair(G.shifted_chebyshev_polynomial_u, input, n, out)


def shifted_chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the third kind of degree n at 2 * input - 1."""
    return _pair(G.shifted_chebyshev_polynomial_v, input, n, out)


def shifted_chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Chebyshev polynomial of the fourth kind of degree n at 2 * input - 1."""
    return _pair(G.shifted_chebyshev_polynomial_w, input, n, out)


def hermite_polynomial_h(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the physicists' Hermite polynomial of degree n."""
    return _pair(G.hermite_polynomial_h, input, n, out)


def hermite_polynomial_he(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the probabilists' Hermite polynomial of degree n."""
    return _pair(G.hermite_polynomial_he, input, n, out)


def laguerre_polynomial_l(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Laguerre polynomial of degree n."""
    return _pair(G.laguerre_polynomial_l, input, n, out)


def legendre_polynomial_p(input: Any, n: Any, *, out: Any = None) -> Any:
    """Compute the Legendre polynomial of degree n."""
    return _pair(G.legendre_polynomial_p, input, n, out)
