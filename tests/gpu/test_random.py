"""The same random numbers as torch.cuda draws from the same seed, where PyTorch with CUDA is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")

DRAWS: dict[str, Callable[[Any, int], Any]] = {
    "rand": lambda t, n: t.rand(n, device="cuda"),
    "rand float64": lambda t, n: t.rand(n, device="cuda", dtype=t.float64),
    "rand float16": lambda t, n: t.rand(n, device="cuda", dtype=t.float16),
    "randn": lambda t, n: t.randn(n, device="cuda"),
    "randn float64": lambda t, n: t.randn(n, device="cuda", dtype=t.float64),
    "randint": lambda t, n: t.randint(0, 100, (n,), device="cuda"),
    "randint int32": lambda t, n: t.randint(-5, 77, (n,), device="cuda", dtype=t.int32),
    "randint wide": lambda t, n: t.randint(0, 2**40, (n,), device="cuda"),
    "random_": lambda t, n: t.empty(n, device="cuda").random_(),
    "random_ int64": lambda t, n: t.empty(n, device="cuda", dtype=t.int64).random_(),
    "uniform_": lambda t, n: t.empty(n, device="cuda").uniform_(-1, 2),
    "normal_": lambda t, n: t.empty(n, device="cuda").normal_(2, 3),
    "exponential_": lambda t, n: t.empty(n, device="cuda").exponential_(1.5),
    "log_normal_": lambda t, n: t.empty(n, device="cuda").log_normal_(1, 0.5),
    "cauchy_": lambda t, n: t.empty(n, device="cuda").cauchy_(1, 2),
    "bernoulli_": lambda t, n: t.empty(n, device="cuda").bernoulli_(0.3),
    "dropout": lambda t, n: t.nn.functional.dropout(t.ones(n, device="cuda"), 0.3),
    "dropout float16": lambda t, n: t.nn.functional.dropout(t.ones(n, device="cuda", dtype=t.float16), 0.3),
    "transposed": lambda t, n: t.empty(n, 3, device="cuda").t().uniform_(),
    "twice": lambda t, n: (t.rand(7, device="cuda"), t.randn(n, device="cuda"))[1],
}


@pytest.mark.parametrize("size", [1, 5, 300, 4096, 1_000_003, 4_000_000])
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_pytorch(name: str, size: int) -> None:
    drawn = []
    for library in (torch, pullback):
        library.cuda.manual_seed(1234)
        drawn.append(DRAWS[name](library, size).cpu().double().numpy())
    offsets = torch.cuda.default_generators[0].get_offset(), pullback.cuda.default_generators[0].get_offset()
    assert offsets[0] == offsets[1]
    if name == "cauchy_":  # a tangent near its pole has few digits
        drawn = [np.arctan(values) for values in drawn]
    # Sines and logarithms differ in their last digits.
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=2e-5, atol=2e-5)


def test_state_is_that_of_pytorch() -> None:
    torch.cuda.manual_seed(77)
    torch.rand(5, device="cuda")
    pullback.cuda.set_rng_state(pullback.tensor(torch.cuda.get_rng_state().numpy()))
    np.testing.assert_allclose(
        pullback.rand(9, device="cuda").cpu().numpy(), torch.rand(9, device="cuda").cpu().numpy()
    )
