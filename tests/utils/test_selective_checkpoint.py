"""Selective checkpointing: kept operations are not run again, and gradients stay the same."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def region(x: Any, w: Any) -> Any:
    return ((x @ w).tanh() @ w).sin().exp()


@pytest.mark.parametrize(("kept", "runs"), [((), 4), (("mm",), 2), (("mm", "tanh"), 2)])
def test_kept_operations_run_once(kept: tuple[str, ...], runs: int) -> None:
    counts = {"mm": 0}

    def count(function: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(function, "__name__", "")
        counts[name] = counts.get(name, 0) + 1
        return NotImplemented

    def policy(context: Any, function: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        name = getattr(function, "__name__", "")
        return CheckpointPolicy.MUST_SAVE if name in kept else CheckpointPolicy.PREFER_RECOMPUTE

    x = pullback.tensor([[0.3, 0.7]], requires_grad=True)
    w = pullback.tensor([[0.5, 0.2], [0.1, 0.4]], requires_grad=True)
    expected = pullback.autograd.grad(region(x, w).sum(), (x, w))
    push_interceptor(count)
    try:
        result = checkpoint(
            region, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
        )
        result.sum().backward()
    finally:
        pop_interceptor()
    pullback.testing.assert_close(x.grad, expected[0])
    pullback.testing.assert_close(w.grad, expected[1])
    assert counts["mm"] == runs
