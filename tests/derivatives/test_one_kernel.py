"""A gradient is the same number on every path: on arrays, on Tensors (`create_graph`), and under vmap.

Where a slope is the difference of nearly equal numbers, as that of tanh near saturation, a path that rounds once more is
wrong in half of the digits. So such slopes are computed by one kernel, or in a form that does not cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.nn import functional as F

NEAR_ONE = pullback.cat([1 - 2.0 ** -pullback.arange(2.0, 23), 2.0 ** -pullback.arange(2.0, 23) - 1])
WIDE = pullback.cat([pullback.linspace(-12, 12, 997), pullback.tensor([-100.0, -40.0, -20.5, 20.5, 40.0, 88.0, 100.0])])
CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "tanh": (pullback.tanh, WIDE),
    "sigmoid": (pullback.sigmoid, WIDE),
    "logsigmoid": (F.logsigmoid, WIDE),
    "softplus": (F.softplus, WIDE),
    "softplus, beta 2": (lambda x: F.softplus(x, 2.0, 3.0), WIDE),
    "gelu": (F.gelu, WIDE),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), WIDE),
    "silu": (F.silu, pullback.cat([WIDE, -1.278464542761074 + 2.0 ** -pullback.arange(2.0, 23)])),
    "mish": (F.mish, pullback.cat([WIDE, -1.192312211083172 + 2.0 ** -pullback.arange(2.0, 23)])),
    "elu": (lambda x: F.elu(x, 1.3), WIDE),
    "selu": (F.selu, WIDE),
    "hardswish": (F.hardswish, WIDE),
    "leaky_relu": (F.leaky_relu, WIDE),
    "softmax": (lambda x: x.softmax(0), WIDE),
    "log_softmax": (lambda x: x.log_softmax(0), WIDE),
    "asin": (pullback.asin, NEAR_ONE),
    "acos": (pullback.acos, NEAR_ONE),
    "atanh": (pullback.atanh, NEAR_ONE),
    "sinc": (pullback.sinc, pullback.cat([WIDE, 2.0 ** -pullback.arange(1.0, 40)])),
    "erfcx": (pullback.special.erfcx, pullback.cat([WIDE[WIDE > -9], pullback.tensor([1e3, 1e4])])),
    "log_ndtr": (pullback.special.log_ndtr, WIDE),
    "erf": (pullback.erf, WIDE),
    "tan": (pullback.tan, WIDE),
    "acosh": (pullback.acosh, 1 + 2.0 ** -pullback.arange(1.0, 22)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_the_same_on_every_path(name: str) -> None:
    function, x = CASES[name]
    leaf, weight = x.clone().requires_grad_(), pullback.full_like(x, 1.37)
    (on_arrays,) = pullback.autograd.grad(function(leaf), leaf, weight)
    (on_tensors,) = pullback.autograd.grad(function(leaf), leaf, weight, create_graph=True)
    batched = pullback.vmap(lambda t, w: pullback.func.vjp(function, t)[1](w)[0])(x[None], weight[None])[0]
    for other in (on_tensors.detach(), batched):
        pullback.testing.assert_close(other, on_arrays, rtol=1e-6, atol=1e-37)
