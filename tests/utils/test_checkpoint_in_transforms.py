"""Checkpointed regions under vmap and in forward mode."""

from __future__ import annotations

import pullback
from pullback import Tensor
from pullback.autograd import forward_ad
from pullback.utils.checkpoint import checkpoint


def region(x: Tensor) -> Tensor:
    result: Tensor = checkpoint(lambda t: t * t * t, x, use_reentrant=False)
    return result


def test_a_checkpointed_region_has_tangents() -> None:
    x = pullback.tensor([1.0, 2.0])
    assert pullback.func.jvp(region, (x,), (pullback.ones(2),))[1].tolist() == [3.0, 12.0]


def test_the_tangent_of_a_checkpointed_region_is_differentiated() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        result = region(forward_ad.make_dual(x, pullback.ones(2)))
        tangent = forward_ad.unpack_dual(result).tangent
        assert tangent is not None
        (second,) = pullback.autograd.grad(tangent.sum(), x, retain_graph=True)
        (first,) = pullback.autograd.grad(result.sum(), x)
    assert second.tolist() == [6.0, 12.0]
    assert first.tolist() == [3.0, 12.0]


def test_a_checkpointed_region_runs_under_vmap() -> None:
    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    pullback.func.vmap(region)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[3.0, 12.0], [27.0, 48.0]]
