"""The special functions under the names of `torch.special`.

>>> import pullback
>>> pullback.special.gammaln(pullback.tensor([4.0]))
tensor([1.7918])
"""

from __future__ import annotations

from typing import Any as _Any

import pullback.functions as _functions
from pullback.tensor.arguments import with_keywords as _with_keywords
from pullback.tensor.foreign_arguments import offer_all as _offer_all

airy_ai = _with_keywords(_functions.airy_ai, x="input")
bessel_j0 = _functions.bessel_j0
bessel_j1 = _functions.bessel_j1
bessel_y0 = _functions.bessel_y0
bessel_y1 = _functions.bessel_y1
chebyshev_polynomial_t = _with_keywords(_functions.chebyshev_polynomial_t, x="input")
chebyshev_polynomial_u = _with_keywords(_functions.chebyshev_polynomial_u, x="input")
chebyshev_polynomial_v = _with_keywords(_functions.chebyshev_polynomial_v, x="input")
chebyshev_polynomial_w = _with_keywords(_functions.chebyshev_polynomial_w, x="input")
digamma = _functions.digamma
entr = _functions.entr
erf = _functions.erf
erfc = _functions.erfc
erfcx = _functions.erfcx
erfinv = _functions.erfinv
exp2 = _functions.exp2
expit = _functions.sigmoid
expm1 = _functions.expm1
gammainc = _functions.igamma
gammaincc = _functions.igammac
gammaln = _functions.lgamma
hermite_polynomial_h = _with_keywords(_functions.hermite_polynomial_h, x="input")
hermite_polynomial_he = _with_keywords(_functions.hermite_polynomial_he, x="input")
i0 = _functions.i0
i0e = _functions.i0e
i1 = _functions.i1
i1e = _functions.i1e
laguerre_polynomial_l = _with_keywords(_functions.laguerre_polynomial_l, x="input")
legendre_polynomial_p = _with_keywords(_functions.legendre_polynomial_p, x="input")
log1p = _functions.log1p
log_ndtr = _functions.log_ndtr


def log_softmax(input: _Any, dim: int, *, dtype: _Any = None) -> _Any:
    """The logarithm of `softmax`."""
    return _functions.log_softmax(input, dim, dtype=dtype)


logit = _functions.logit
logsumexp = _functions.logsumexp
modified_bessel_i0 = _functions.modified_bessel_i0
modified_bessel_i1 = _functions.modified_bessel_i1
modified_bessel_k0 = _functions.modified_bessel_k0
modified_bessel_k1 = _functions.modified_bessel_k1
multigammaln = _functions.mvlgamma
ndtr = _functions.ndtr
ndtri = _functions.ndtri
polygamma = _functions.polygamma
psi = _functions.digamma
round = _functions.round
scaled_modified_bessel_k0 = _with_keywords(_functions.scaled_modified_bessel_k0, x="input")
scaled_modified_bessel_k1 = _with_keywords(_functions.scaled_modified_bessel_k1, x="input")
shifted_chebyshev_polynomial_t = _with_keywords(_functions.shifted_chebyshev_polynomial_t, x="input")
shifted_chebyshev_polynomial_u = _with_keywords(_functions.shifted_chebyshev_polynomial_u, x="input")
shifted_chebyshev_polynomial_v = _with_keywords(_functions.shifted_chebyshev_polynomial_v, x="input")
shifted_chebyshev_polynomial_w = _with_keywords(_functions.shifted_chebyshev_polynomial_w, x="input")
sinc = _functions.sinc


def softmax(input: _Any, dim: int, *, dtype: _Any = None) -> _Any:
    """Exponentials, divided by their sum along a dimension."""
    return _functions.softmax(input, dim, dtype=dtype)


spherical_bessel_j0 = _with_keywords(_functions.spherical_bessel_j0, x="input")
xlog1py = _functions.xlog1py
xlogy = _functions.xlogy
zeta = _functions.zeta

_offer_all(globals())
