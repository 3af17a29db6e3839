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


REGIONS: dict[str, Any] = {
    "max": lambda x: x.sin().max(1)[0],
    "sort": lambda x: x.sin().sort(1)[0] * 2,
    "linalg_qr": lambda x: pullback.linalg.qr(x.T @ x)[1].sin(),
    "layer_norm": lambda x: pullback.nn.functional.layer_norm(x.sin(), (3,)).exp(),
    "log_softmax": lambda x: x.sin().log_softmax(1).exp(),
    "svd": lambda x: pullback.linalg.svd(x.sin(), full_matrices=False)[1] ** 2,
    "stack": lambda x: pullback.stack([x.sin(), x.cos()]).exp(),
    "dropout": lambda x: pullback.dropout(pullback.dropout(x.sin(), 0.5, True).exp(), 0.5, True),
    "view": lambda x: (x.sin().t() @ x.cos()).reshape(-1).exp(),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("everything", [True, False])
def test_gradients_stay_the_same_whatever_is_kept(name: str, everything: bool) -> None:
    numbers = iter(range(10**6))

    def policy(context: Any, function: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        keeps = everything or len(getattr(function, "__name__", "")) % 2 == 0
        next(numbers)
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    x = pullback.tensor([[0.3, 0.7, 0.2], [0.9, 0.4, -0.6]], dtype=pullback.float64, requires_grad=True)
    pullback.manual_seed(1)
    (expected,) = pullback.autograd.grad(REGIONS[name](x).sum(), x)
    pullback.manual_seed(1)
    result = checkpoint(
        REGIONS[name], x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
    )
    (actual,) = pullback.autograd.grad(result.sum(), x)
    pullback.testing.assert_close(actual, expected)


def test_a_kept_result_must_not_be_modified() -> None:
    x = pullback.ones(2, requires_grad=True)
    everything: Any = lambda *args, **kwargs: CheckpointPolicy.MUST_SAVE  # noqa: E731
    result = checkpoint(
        lambda x: x.sin().mul_(2).exp(), x, use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(everything),
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        result.sum().backward()


def test_an_operation_with_several_results_and_other_saved_tensors_runs_once() -> None:
    names: list[str] = []

    def count(function: Any, args: Any, kwargs: Any) -> Any:
        names.append(getattr(function, "__name__", ""))
        return NotImplemented

    def region_of_matrices(x: Any) -> Any:
        q, r = pullback.linalg.qr(x.sin())
        return pullback.nn.functional.layer_norm((q @ r).exp(), (2,)).sin()

    x = pullback.tensor([[0.3, 0.7], [0.9, 0.4]], requires_grad=True)
    push_interceptor(count)
    try:
        context = lambda: create_selective_checkpoint_contexts(lambda *args, **kwargs: CheckpointPolicy.MUST_SAVE)  # noqa: E731
        checkpoint(region_of_matrices, x, use_reentrant=False, context_fn=context).sum().backward()
    finally:
        pop_interceptor()
    assert [names.count(name) for name in ("sin", "linalg_qr", "exp")] == [2, 1, 1]
