"""Whole training steps as programs: optimizers, rates that change, gradients that accumulate."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn
from tests.compiling.comparison import CALLS, F, assert_close, skipped, weights

OPTIMIZERS: list[Any] = [
    lambda p: pullback.optim.SGD(p, lr=0.1),
    lambda p: pullback.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    lambda p: pullback.optim.Adam(p, lr=0.1),
    lambda p: pullback.optim.AdamW(p, lr=0.1, amsgrad=True),
    lambda p: pullback.optim.RMSprop(p, lr=0.1),
    lambda p: pullback.optim.NAdam(p, lr=0.1),
    lambda p: pullback.optim.Adagrad(p, lr=0.1),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("set_to_none", [True, False])
def test_whole_training_step_is_one_program(make: Any, set_to_none: bool) -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.Linear(8, 2))
        optimizer = make(network.parameters())

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = F.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        act = pullback.compile(step) if compiles else step
        losses = [act(pullback.randn(6, 4), pullback.randint(0, 2, (6,))) for _ in range(8)]
        if compiles:
            assert skipped(act) >= 3
        return losses, [p.detach() for p in network.parameters()], [p.grad for p in network.parameters()]

    for expected, actual in zip(run(False), run(True), strict=True):
        for one, other in zip(expected, actual, strict=True):
            assert_close(one, other, rtol=1e-4)  # eight steps by normalized gradients enlarge a rounding


def _step_twice(network: Any, old: list[Any], optimizer: Any) -> Any:
    optimizer.zero_grad()
    network(pullback.ones(2, 4)).square().sum().backward()
    optimizer.step()
    return [p.detach().clone() for p in network.parameters()]


@pytest.mark.parametrize("make", [OPTIMIZERS[0], OPTIMIZERS[2]])
@pytest.mark.parametrize(
    "after",
    [
        lambda network, old, optimizer: network(pullback.ones(2, 4)).detach(),
        lambda network, old, optimizer: old,
        lambda network, old, optimizer: [p.detach() - q for p, q in zip(network.parameters(), old, strict=True)],
        _step_twice,
    ],
)
def test_program_reads_parameters_after_their_step(make: Any, after: Any) -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = make(network.parameters())

        def step(x: Any) -> Any:
            old = [p.detach().clone() for p in network.parameters()]
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
            return after(network, old, optimizer)

        act = pullback.compile(step) if compiles else step
        results = [pullback.utils._pytree.tree_leaves(act(pullback.randn(6, 4))) for _ in range(6)]
        assert not compiles or skipped(act) >= 3
        return [x for result in results for x in result] + [p.detach() for p in network.parameters()]

    for expected, actual in zip(run(False), run(True), strict=True):
        assert_close(expected, actual, rtol=1e-4)


def scheduled(reads_rate: bool) -> Any:
    """The parameters after steps with a rate that changes, eager and compiled, and how often Python was skipped."""
    results = []
    for compiles in (False, True):
        w = weights(3)
        optimizer = pullback.optim.SGD([w], lr=1.0)
        scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x: Any, optimizer: Any = optimizer, w: Any = w) -> Any:
            optimizer.zero_grad()
            loss = (w * x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def reading_step(x: Any, optimizer: Any = optimizer, step: Any = step) -> Any:
            return step(x) * optimizer.param_groups[0]["lr"]

        chosen = reading_step if reads_rate else step
        act = pullback.compile(chosen) if compiles else chosen
        losses = []
        for _ in range(8):
            losses.append(act(pullback.ones(3)).item())
            scheduler.step()
        results.append((w.tolist(), losses))
    return (*results, skipped(act))


def test_rate_of_an_optimizer_may_change_from_step_to_step() -> None:
    expected, actual, count = scheduled(reads_rate=False)
    assert actual[0] == pytest.approx(expected[0], rel=1e-5)
    assert actual[1] == pytest.approx(expected[1], rel=1e-5)
    assert count >= 5


def test_rate_that_the_function_reads_is_followed() -> None:
    expected, actual, _ = scheduled(reads_rate=True)
    assert actual == expected


def test_scheduler_inside_of_a_function_steps_each_time() -> None:
    w = weights(3)
    optimizer = pullback.optim.SGD([w], lr=1.0)
    scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach()

    compiled = pullback.compile(step)
    for _ in range(5):
        compiled(pullback.ones(3))
    assert optimizer.param_groups[0]["lr"] == 0.5**5


def test_clipped_step_and_masked_attention_are_one_program() -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        w = weights(4, 8)
        optimizer = pullback.optim.SGD([w], lr=0.1)

        def step(q: Any, mask: Any) -> Any:
            optimizer.zero_grad()
            seen = F.scaled_dot_product_attention(q @ w, q @ w, q @ w, attn_mask=mask)
            loss = seen.pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_([w], 0.01)
            optimizer.step()
            return loss.detach()

        act = pullback.compile(step) if compiles else step
        losses = [act(pullback.randn(2, 3, 4), pullback.zeros(3, 3)).item() for _ in range(5)]
        assert not compiles or skipped(act) >= 2
        return losses

    assert run(True) == pytest.approx(run(False), rel=1e-5)


def test_one_result_may_be_used_up_inside_and_another_not() -> None:
    def function(x: Any) -> Any:
        used, fresh = (x * x).sum(), x.exp()
        used.backward()
        return used, fresh

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        x = weights(2)
        used, fresh = compiled(x)
        fresh.sum().backward()
        assert pullback.allclose(x.grad, 2 * x + x.exp())
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            used.backward()


def test_gradients_accumulate_where_they_are_not_zeroed() -> None:
    w = weights(3)

    def accumulate(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss.detach()

    compiled = pullback.compile(accumulate)
    for _ in range(5):
        compiled(pullback.ones(3))
    assert w.grad.tolist() == [5.0, 5.0, 5.0]
    assert skipped(compiled) >= 2
