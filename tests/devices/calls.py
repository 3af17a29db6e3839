"""Calls of kernels that no derivative sample reaches: results that have no gradient, optimizers, special functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pullback
import pullback.nn.functional as F

Call = Callable[[str], Any]


def x(device: str, *shape: int) -> Any:
    """Numbers between -1 and 1, all different."""
    count = 1
    for size in shape:
        count *= size
    steps = pullback.arange(count, dtype=pullback.float64) * 0.7391
    return (steps.sin() * 0.9).reshape(shape).to(device)


def i(device: str, *values: int) -> Any:
    return pullback.tensor(values, device=device)


def _gradient(call: Callable[[Any], Any], leaf: Any) -> Any:
    """What a call of one tensor gives, and its gradient."""
    leaf.requires_grad_()
    result = call(leaf)
    result.sum().backward()
    return result.detach(), leaf.grad


def step(make: Callable[[Any], Any], device: str, steps: int = 3) -> list[Any]:
    """What parameters are after some steps of an optimizer."""
    weights = [x(device, 3, 4).float().requires_grad_(), x(device, 4).float().requires_grad_()]
    optimizer = make(weights)
    for _ in range(steps):
        optimizer.zero_grad()
        ((weights[0] + weights[1]) ** 2).sum().backward()
        optimizer.step()
    return [w.detach() for w in weights]


def _special(name: str, device: str) -> Any:
    return getattr(pullback.special, name)(x(device, 5).abs() + 0.1)


def _polynomial(name: str, device: str) -> Any:
    return getattr(pullback.special, name)(x(device, 5), 3)


_O = pullback.optim
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: _O.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: _O.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: _O.AdamW(p, lr=0.1),
    "NAdam": lambda p: _O.NAdam(p, lr=0.1),
    "RAdam": lambda p: _O.RAdam(p, lr=0.1),
    "Adamax": lambda p: _O.Adamax(p, lr=0.1),
    "RMSprop": lambda p: _O.RMSprop(p, lr=0.1, centered=True),
    "Adagrad": lambda p: _O.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: _O.Adadelta(p, lr=0.1),
    "ASGD": lambda p: _O.ASGD(p, lr=0.1),
    "Rprop": lambda p: _O.Rprop(p, lr=0.1),
}
_SPECIAL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 modified_bessel_i0 modified_bessel_i1 "
    "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 expit"
).split()
_POLYNOMIALS = (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p"
).split()

CALLS: dict[str, Call] = {
    "compared": lambda d: [x(d, 3) == x(d, 3), x(d, 3) != 1, x(d, 3) < 0, x(d, 3) <= 0, x(d, 3) > 0, x(d, 3) >= 0],
    "of bits": lambda d: [
        i(d, 6, 4) & i(d, 4, 6),
        i(d, 6, 4) | i(d, 4, 6),
        i(d, 6, 4) ^ i(d, 4, 6),
        i(d, 6, 4) << 1,
        i(d, 6, 4) >> 1,
        i(d, 0, 1).logical_and(i(d, 1, 1)),
        i(d, 0, 1).logical_or(i(d, 0, 0)),
        i(d, 0, 1).logical_xor(i(d, 1, 1)),
        i(d, 6, 4).lcm(i(d, 4, 6)),
    ],
    "of two": lambda d: [
        pullback.nextafter(x(d, 3), x(d, 3) + 1),
        pullback.heaviside(x(d, 3), x(d, 3)),
        pullback.logaddexp2(x(d, 3), x(d, 3)),
        pullback.complex(x(d, 3), x(d, 3)).real,
    ],
    "isinf": lambda d: (x(d, 3) / i(d, 0, 1, 0)).isinf(),
    "isposinf": lambda d: pullback.isposinf(x(d, 3) / i(d, 0, 1, 0)),
    "isneginf": lambda d: pullback.isneginf(x(d, 3) / i(d, 0, 1, 0)),
    "isreal": lambda d: pullback.isreal(x(d, 3) * 1j),
    "geqrf": lambda d: pullback.geqrf(x(d, 4, 3)),
    "eigvalsh": lambda d: pullback.linalg.eigvalsh(x(d, 3, 3)),
    "eigvals": lambda d: pullback.linalg.eigvals(x(d, 3, 3)).real.sum(),
    "svdvals": lambda d: pullback.linalg.svdvals(x(d, 4, 3)),
    "matrix_rank": lambda d: pullback.linalg.matrix_rank(x(d, 4, 3)),
    "one_hot": lambda d: F.one_hot(i(d, 0, 2, 1), 4),
    "argmax": lambda d: (x(d, 3, 4).argmax(1), x(d, 3, 4).argmin(), x(d, 3, 4).argsort(1)),
    "fftfreq": lambda d: pullback.fft.fftfreq(5, device=d),
    "histogramdd": lambda d: pullback.histogramdd(x(d, 9, 2), [3, 2], range=[-1.0, 1.0, -1.0, 1.0])[0],
    "unravel_index": lambda d: pullback.unravel_index(i(d, 3, 7), (3, 4)),
    "nonzero_static": lambda d: pullback.nonzero_static(i(d, 0, 3, 0, 5), size=3),
    "interpolate": lambda d: (
        F.interpolate(x(d, 1, 2, 4), 7, mode="nearest-exact"),
        F.interpolate(x(d, 1, 2, 3, 4, 3), 5),
        F.interpolate(x(d, 1, 2, 3, 4, 3), 5, mode="nearest-exact"),
    ),
    "ldl": lambda d: pullback.linalg.ldl_factor(x(d, 3, 3) + x(d, 3, 3).T),
    "ldl_solve": lambda d: pullback.linalg.ldl_solve(
        *pullback.linalg.ldl_factor(x(d, 3, 3) + x(d, 3, 3).T), x(d, 3, 1)
    ),
    "folded linear": lambda d: F.linear(x(d, 2, 3, 4).float(), x(d, 5, 4).float()),
    "pads": lambda d: (
        F.pad(x(d, 1, 2, 3, 4), (1, 1, 1, 1), mode="replicate"),
        F.pad(x(d, 1, 1, 3, 3, 3), (1,) * 6, mode="reflect"),
    ),
    "max_unpool3d": lambda d: F.max_unpool3d(*F.max_pool3d(x(d, 1, 1, 4, 4, 4), 2, return_indices=True), 2),
    "rms_norm of 16 bits": lambda d: F.rms_norm(x(d, 3, 4).half(), (4,), x(d, 4).half()),
    "masked_select of one": lambda d: _gradient(lambda a: a.masked_select(a > -9), x(d)),
    "ldexp of one": lambda d: _gradient(lambda a: pullback.ldexp(pullback.tensor(3.0, device=d), a), x(d)),
    "norm at a complex zero": lambda d: _gradient(
        lambda a: a.norm(), pullback.zeros(3, dtype=pullback.complex128, device=d)
    ),
    "count_nonzero": lambda d: pullback.count_nonzero(i(d, 0, 3, 0, 5)),
    "searchsorted": lambda d: pullback.searchsorted(i(d, 1, 3, 5), i(d, 0, 3, 9), right=True),
    "bucketize": lambda d: pullback.bucketize(x(d, 5), pullback.tensor([-0.5, 0.0, 0.5], device=d)),
    "unique": lambda d: pullback.unique(i(d, 3, 1, 3, 2), return_inverse=True, return_counts=True),
    "unique_consecutive": lambda d: pullback.unique_consecutive(i(d, 3, 3, 1, 1, 3), return_counts=True),
    "histc": lambda d: pullback.histc(x(d, 20), 4, -1, 1),
    "bincount": lambda d: pullback.bincount(i(d, 0, 3, 3)),
    "isin": lambda d: pullback.isin(i(d, 1, 2, 3), i(d, 2, 5)),
    "triangles": lambda d: (pullback.tril_indices(3, 4, device=d), pullback.triu_indices(3, 4, device=d)),
    "view dtype": lambda d: x(d, 4).float().view(pullback.int32),
    "sobol": lambda d: pullback.quasirandom.SobolEngine(3).draw(4).to(d),
    "comparisons": lambda d: (x(d, 3) > 0, x(d, 3).eq(0.5), x(d, 3).isnan(), pullback.isclose(x(d, 3), x(d, 3))),
    "integers": lambda d: (
        i(d, 7, -7) // 2,
        i(d, 7, -7) % 3,
        i(d, 6, 5) & 3,
        i(d, 6, 4).gcd(i(d, 4, 6)),
        i(d, 1, 2) << 2,
    ),
    "windows": lambda d: [
        getattr(pullback, f"{n}_window")(7, device=d) for n in ("hann", "bartlett", "kaiser", "blackman")
    ],
    "ranges": lambda d: (
        pullback.arange(3, device=d),
        pullback.linspace(0, 1, 5, device=d),
        pullback.eye(3, device=d),
        pullback.full((2,), 3, device=d),
        pullback.zeros(2, device=d) + pullback.ones(2, device=d),
        pullback.empty(2, 3, device=d).fill_(2.0),
    ),
    "clip": lambda d: _clipped(d),
    "renorm": lambda d: F.embedding(i(d, 0, 2), x(d, 3, 4).float() * 5, max_norm=1.0),
    "half": lambda d: (x(d, 3, 4).half() * 2 + 1).float().sum(0),
    "bfloat16": lambda d: (x(d, 3, 4).bfloat16() @ x(d, 4, 2).bfloat16()).float(),
    "in place": lambda d: x(d, 3, 4).mul_(2).add_(1).clamp_(0, 1),
    "write": lambda d: _written(d),
    "copy": lambda d: pullback.zeros(3, 4, device=d, dtype=pullback.float64).copy_(x(d, 3, 4)),
    "sort": lambda d: (*x(d, 3, 4).sort(1, descending=True), *x(d, 3, 4).topk(2)),
    "quantile": lambda d: (x(d, 9).quantile(0.3), x(d, 9).median(), x(d, 9).kthvalue(3)[0], x(d, 9).mode()[0]),
    "all": lambda d: (x(d, 3).any(), (x(d, 3) > 0).all(), x(d, 3).aminmax()),
    "strings": lambda d: [pullback.tensor(len(repr(x(d, 3))) - len(repr(x("cpu", 3))), device=d)] * 0,
    "softmax data": lambda d: pullback.softmax(x(d, 3, 4).float(), 1),
    "where": lambda d: pullback.where(x(d, 3) > 0, x(d, 3), 0.0),
    "cat": lambda d: pullback.cat([x(d, 3, 4), x(d, 2, 4)]).split(2),
    **{name: partial(_special, name) for name in _SPECIAL},
    **{name: partial(_polynomial, name) for name in _POLYNOMIALS},
    **{f"optim.{name}": partial(step, make) for name, make in OPTIMIZERS.items()},
}


def _clipped(device: str) -> list[Any]:
    weights = [x(device, 3).requires_grad_(), x(device, 4).requires_grad_()]
    sum((w**2).sum() for w in weights).backward()
    total = pullback.nn.utils.clip_grad_norm_(weights, 0.5)
    return [total, *[w.grad for w in weights]]


def _written(device: str) -> Any:
    y = x(device, 3, 4)
    y[0] = 1.0
    y[:, 1] = i(device, 1, 2, 3)
    y[y > 0.5] = 0.25
    y[i(device, 0, 1), i(device, 2, 3)] = x(device, 2)
    y[1:, 2:] += 1
    return y
