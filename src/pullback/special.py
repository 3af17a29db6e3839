"""The special functions under the names of `torch.special`.

>>> import pullback
>>> pullback.special.gammaln(pullback.tensor([4.0]))
tensor([1.7918])
"""

from __future__ import annotations

import pullback.functions as _functions

airy_ai = _functions.airy_ai
bessel_j0 = _functions.bessel_j0
bessel_j1 = _functions.bessel_j1
bessel_y0 = _functions.bessel_y0
bessel_y1 = _functions.bessel_y1
chebyshev_polynomial_t = _functions.chebyshev_polynomial_t
chebyshev_polynomial_u = _functions.chebyshev_polynomial_u
chebyshev_polynomial_v = _functions.chebyshev_polynomial_v
chebyshev_polynomial_w = _functions.chebyshev_polynomial_w
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
hermite_polynomial_h = _functions.hermite_polynomial_h
hermite_polynomial_he = _functions.hermite_polynomial_he
i0 = _functions.i0
i0e = _functions.i0e
i1 = _functions.i1
i1e = _functions.i1e
laguerre_polynomial_l = _functions.laguerre_polynomial_l
legendre_polynomial_p = _functions.legendre_polynomial_p
log1p = _functions.log1p
log_ndtr = _functions.log_ndtr
log_softmax = _functions.log_softmax
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
scaled_modified_bessel_k0 = _functions.scaled_modified_bessel_k0
scaled_modified_bessel_k1 = _functions.scaled_modified_bessel_k1
shifted_chebyshev_polynomial_t = _functions.shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u = _functions.shifted_chebyshev_polynomial_u
shifted_chebyshev_polynomial_v = _functions.shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w = _functions.shifted_chebyshev_polynomial_w
sinc = _functions.sinc
softmax = _functions.softmax
spherical_bessel_j0 = _functions.spherical_bessel_j0
xlog1py = _functions.xlog1py
xlogy = _functions.xlogy
zeta = _functions.zeta
