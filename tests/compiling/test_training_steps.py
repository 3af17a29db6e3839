"""Whole training steps, and derivatives of second order, inside of one compiled function, beside eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import nn

F, optim = nn.functional, pullback.optim
CALLS = 5


def compare(build: Callable[[], Callable[[], Any]]) -> Any:
    """What a step gives is the same in each call, compiled or not; gives the compiled step."""
    seen, act = [], None
    for compiles in (False, True):
        pullback.manual_seed(0)
        act = pullback.compile(build()) if compiles else build()
        calls = []
        for call in range(CALLS):
            pullback.manual_seed(100 + call)
            calls.append([*act(), pullback.rand(1)])
        seen.append(calls)
    for expected, actual in zip(*seen, strict=True):
        for one, other in zip(expected, actual, strict=True):
            pullback.testing.assert_close(other, one, rtol=2e-4, atol=1e-5)
    return act


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def with_statistics() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3))


def trainer(model: Any, make_optimizer: Any, run: Any = None, after: Any = None) -> Callable[[], Any]:
    """A function that makes a model and gives its training step."""

    def build() -> Callable[[], Any]:
        network = model()
        optimizer = make_optimizer(network.parameters())

        def step() -> Any:
            x, y = pullback.randn(6, 4), pullback.randint(0, 3, (6,))
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x) if run is None else run(network, x), y)
            loss.backward()
            if after is not None:
                after(network)
            optimizer.step()
            values = [*network.parameters(), *network.buffers()]
            return [loss.detach(), *[value.detach().clone() for value in values]]

        return step

    return build


NAMES = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"]


@pytest.mark.parametrize("name", NAMES)
def test_step_of_every_optimizer_is_one_program(name: str) -> None:
    step = compare(trainer(perceptron, lambda parameters: getattr(optim, name)(parameters, lr=0.01)))
    assert step.segments is None
    assert step.runs >= CALLS - 3


def in_half_precision(network: Any, x: Any) -> Any:
    with pullback.autocast("cpu", dtype=pullback.bfloat16):
        result = network(x)
    return result.float()


def checkpointed(network: Any, x: Any) -> Any:
    return pullback.utils.checkpoint.checkpoint(network, x, use_reentrant=False)


def clip(network: Any) -> None:
    nn.utils.clip_grad_norm_(network.parameters(), 0.1)


STEPS: list[Any] = [
    (with_statistics, None, None), (perceptron, in_half_precision, None), (perceptron, None, clip),
]  # fmt: skip


@pytest.mark.parametrize(("model", "run", "after"), STEPS)
def test_step_with_statistics_autocast_or_clipping_is_one_program(model: Any, run: Any, after: Any) -> None:
    step = compare(trainer(model, lambda parameters: optim.SGD(parameters, lr=0.01), run, after))
    assert step.segments is None
    assert step.runs == CALLS - 2


@pytest.mark.parametrize("model", [perceptron, with_statistics])
def test_checkpoint_gives_what_eager_gives_and_draws_the_same_numbers_again(model: Any) -> None:
    compare(trainer(model, lambda parameters: optim.SGD(parameters, lr=0.01), checkpointed))


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("with_backward", [True, False])
def test_numbers_that_a_checkpoint_draws_again_are_those_of_eager(
    reentrant: bool, preserve: bool, with_backward: bool
) -> None:
    def build() -> Any:
        network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.4), nn.Linear(8, 4))

        def forward(x: Any) -> Any:
            y = pullback.utils.checkpoint.checkpoint(
                network, F.dropout(x, 0.2), use_reentrant=reentrant, preserve_rng_state=preserve
            )
            return F.dropout(y, 0.3).square().sum()

        def step(x: Any) -> Any:
            network.zero_grad()
            loss = forward(x)
            loss.backward()
            return loss.detach()

        return network, step if with_backward else forward

    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        network, function = build()
        act = pullback.compile(function) if compiles else function
        seen: list[Any] = []
        for _ in range(6):
            x = pullback.randn(3, 4, requires_grad=True)
            network.zero_grad()
            result = act(x)
            if not with_backward:
                result.backward()
            seen += [result.detach(), pullback.rand(2), x.grad, *[p.grad for p in network.parameters()]]
        if compiles and (with_backward or (preserve and not reentrant)):
            assert act.runs == 4
        return seen

    for expected, actual in zip(run(False), run(True), strict=True):
        pullback.testing.assert_close(actual, expected)


@pytest.mark.parametrize("is_float", [True, False])
def test_encoder_with_a_causal_mask_and_padding_is_one_program(is_float: bool) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)
    compiled = pullback.compile(encoder.forward, fullgraph=True)
    forbidden = pullback.ones(5, 5, dtype=pullback.bool).triu(1)
    mask = nn.Transformer.generate_square_subsequent_mask(5) if is_float else forbidden
    padding = None if is_float else pullback.arange(5)[None] >= pullback.tensor([5, 3])[:, None]
    for _ in range(CALLS):
        x = pullback.randn(2, 5, 8)
        actual = compiled(x, mask=mask, src_key_padding_mask=padding)
        pullback.testing.assert_close(actual, encoder(x, mask=mask, src_key_padding_mask=padding))
    assert compiled.runs == CALLS - 2


def hessian_vector_product() -> Any:
    w = pullback.randn(5, requires_grad=True)

    def product() -> Any:
        x = pullback.randn(5)
        (first,) = pullback.autograd.grad(((w * x).tanh() ** 2).sum(), w, create_graph=True)
        return first.detach(), *pullback.autograd.grad((first * x).sum(), w)

    return product


def gradient_penalty() -> Any:
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.SGD(network.parameters(), lr=0.01)

    def step() -> Any:
        x = pullback.randn(6, 4, requires_grad=True)
        optimizer.zero_grad()
        (grad,) = pullback.autograd.grad(network(x).sum(), x, create_graph=True)
        loss = (grad.norm(dim=1) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        return [loss.detach(), *[p.detach().clone() for p in network.parameters()]]

    return step


@pytest.mark.parametrize("build", [hessian_vector_product, gradient_penalty])
def test_derivatives_of_second_order_are_one_program(build: Any) -> None:
    assert compare(build).runs == CALLS - 2


def with_scaler() -> Any:
    network = perceptron()
    optimizer, scaler = optim.SGD(network.parameters(), lr=0.01), pullback.amp.GradScaler("cpu", init_scale=4.0)

    def step() -> Any:
        optimizer.zero_grad()
        loss = network(pullback.randn(6, 4)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return [loss.detach(), *[p.detach().clone() for p in network.parameters()]]

    return step


def with_closure() -> Any:
    w = pullback.randn(4, requires_grad=True)
    optimizer = optim.LBFGS([w], lr=0.1, max_iter=3)

    def step() -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((w - 1) ** 2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure).detach(), w.detach().clone()

    return step


def with_scheduler() -> Any:
    network = perceptron()
    optimizer = optim.SGD(network.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def step() -> Any:
        optimizer.zero_grad()
        loss = network(pullback.randn(6, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return [loss.detach(), *[p.detach().clone() for p in network.parameters()]]

    return step


@pytest.mark.parametrize("build", [with_scaler, with_closure, with_scheduler])
def test_step_that_python_takes_part_in_gives_what_eager_gives(build: Any) -> None:
    assert compare(build).runs == 0


@pytest.mark.parametrize("results", ["loss", "loss, scores"])
def test_step_that_returns_what_has_a_used_up_graph_is_one_program(results: str) -> None:
    pullback.manual_seed(0)
    network = perceptron()
    optimizer = optim.AdamW(network.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        scores = network(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss if results == "loss" else (loss, scores)

    compiled = pullback.compile(step)
    for _ in range(CALLS):
        made = compiled(pullback.randn(6, 4), pullback.randint(0, 3, (6,)))
    assert compiled.runs == CALLS - 3  # the first call makes the optimizer's state
    loss = made if results == "loss" else made[0]
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_results_of_which_one_graph_is_used_up_are_eager() -> None:
    weight = pullback.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        loss, other = (weight * x).exp().sum(), (weight * x).sin()
        loss.backward()
        return loss, other

    compiled = pullback.compile(step)
    for _ in range(CALLS):
        _, other = compiled(pullback.ones(3))
        other.sum().backward()
    assert compiled.runs == 0


def test_forward_mode_is_part_of_a_program() -> None:
    def build() -> Any:
        return lambda: pullback.func.jvp(
            pullback.func.grad(lambda x: (x**3).sum()), (pullback.rand(3),), (pullback.rand(3),)
        )

    assert compare(build).runs == CALLS - 2


def test_program_may_hold_a_number_that_is_not_equal_to_itself() -> None:
    def build() -> Any:
        return lambda: [pullback.linalg.inv(pullback.rand(2, 2) + 2 * pullback.eye(2))]

    assert compare(build).runs == CALLS - 2


def test_grad_made_in_inference_mode_stays_one() -> None:
    def step(x: Any) -> Any:
        with pullback.inference_mode():
            x.grad = pullback.ones(2)
        return x * 2

    compiled = pullback.compile(step)
    for _ in range(CALLS):
        x = pullback.ones(2, requires_grad=True)
        compiled(x)
        assert x.grad.is_inference()


def test_step_with_sparse_gradients_gives_what_eager_execution_gives() -> None:
    def make() -> Any:
        pullback.manual_seed(0)
        table = nn.Embedding(5, 3, sparse=True)
        optimizer = pullback.optim.SparseAdam(table.parameters(), lr=0.1)

        def step(index: Any) -> Any:
            loss = table(index).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    eager, compiled = make(), pullback.compile(make())
    for call in range(5):
        index = pullback.tensor([call % 5, 1])
        pullback.testing.assert_close(compiled(index), eager(index))
