"""Selective checkpointing: kept operations are not run again, and gradients stay the same."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


class Count(TorchDispatchMode):
    """Counts the operations that really run: around a checkpointed region it does not see what is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


def region(x: Any, w: Any) -> Any:
    return ((x @ w).tanh() @ w).sin().exp()


@pytest.mark.parametrize(("kept", "runs"), [((), 4), (("mm",), 2), (("mm", "tanh"), 2)])
def test_kept_operations_run_once(kept: tuple[str, ...], runs: int) -> None:
    operators = [getattr(pullback.ops.aten, name).default for name in kept]
    x = pullback.tensor([[0.3, 0.7]], requires_grad=True)
    w = pullback.tensor([[0.5, 0.2], [0.1, 0.4]], requires_grad=True)
    expected = pullback.autograd.grad(region(x, w).sum(), (x, w))
    with Count() as counted:
        result = checkpoint(
            region, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(operators)
        )
        result.sum().backward()
    pullback.testing.assert_close(x.grad, expected[0])
    pullback.testing.assert_close(w.grad, expected[1])
    assert counted.names.count("aten.mm") == runs + 4  # four are those of the gradients


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


def test_an_operation_with_several_results_runs_once() -> None:
    def region_of_matrices(x: Any) -> Any:
        q, r = pullback.linalg.qr(x.sin())
        return pullback.nn.functional.layer_norm((q @ r).exp(), (2,)).sin()

    x = pullback.tensor([[0.3, 0.7], [0.9, 0.4]], requires_grad=True)
    everything: Any = lambda *args, **kwargs: CheckpointPolicy.MUST_SAVE  # noqa: E731
    with Count() as counted:
        checkpoint(
            region_of_matrices, x, use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(everything),
        ).sum().backward()  # fmt: skip
    names = ("aten.sin", "aten.linalg_qr", "aten.native_layer_norm", "aten.exp")
    assert [counted.names.count(name) for name in names] == [2, 1, 1, 1]


def test_policies_are_asked_with_overloads_and_only_once() -> None:
    asked: list[tuple[bool, Any]] = []

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        asked.append((context.is_recompute, op))
        return CheckpointPolicy.PREFER_RECOMPUTE

    x = pullback.ones(2, 2, requires_grad=True)
    checkpoint(
        lambda x: (x @ x).sin(), x, use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    ).sum().backward()  # fmt: skip
    assert asked == [(False, pullback.ops.aten.mm.default), (False, pullback.ops.aten.sin.default)]


@pytest.mark.parametrize(
    ("given", "message"),
    [(2, "but got: 2 of type"), (pullback.ops.aten.mm, "Name one of its overloads, such as torch.ops.aten.mm.default")],
)
def test_a_list_must_hold_overloads(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"Expected op in `op_list` to be an OpOverload.*{message}"):
        create_selective_checkpoint_contexts([given])


def test_a_second_backward_through_kept_results_raises() -> None:
    everything: Any = lambda *args, **kwargs: CheckpointPolicy.MUST_SAVE  # noqa: E731
    result = checkpoint(
        lambda x: x.sin().exp(), pullback.ones(2, requires_grad=True), use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(everything),
    ).sum()  # fmt: skip
    result.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        result.backward()
