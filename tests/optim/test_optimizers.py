"""Optimizers: groups, state, hooks, and small steps that a person can check."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn, optim

ELEMENTWISE: list[Any] = [
    optim.SGD, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam, optim.RMSprop, optim.Rprop,
    optim.Adadelta, optim.Adagrad, optim.ASGD,
]  # fmt: skip


def parameter(*values: float) -> Any:
    return nn.Parameter(pullback.tensor(values))


def with_grad(values: list[float], grad: list[float]) -> Any:
    made = parameter(*values)
    made.grad = pullback.tensor(grad)
    return made


def test_gradient_descent_steps_against_the_gradient() -> None:
    x = with_grad([1.0, 2.0], [10.0, -10.0])
    optim.SGD([x], lr=0.1).step()
    assert x.tolist() == pytest.approx([0.0, 3.0], abs=1e-7)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "ASGD"])
def test_a_number_steps_as_a_vector_of_one(name: str) -> None:
    number, vector = nn.Parameter(pullback.tensor(1.0)), parameter(1.0)
    for each in (number, vector):
        each.grad = pullback.full_like(each, 0.5)
        optimizer = getattr(optim, name)([each], lr=0.1)
        optimizer.step()
        optimizer.step()
    assert number.item() == vector.item()


def test_momentum_adds_up() -> None:
    x = with_grad([0.0], [1.0])
    optimizer = optim.SGD([x], lr=1.0, momentum=0.5)
    optimizer.step()
    optimizer.step()
    assert x.tolist() == [-2.5]


def test_the_first_step_of_adam_is_the_learning_rate() -> None:
    x = with_grad([0.0, 0.0], [3.0, -0.01])
    optim.Adam([x], lr=0.5).step()
    assert x.tolist() == pytest.approx([-0.5, 0.5], abs=1e-5)


def test_a_step_is_noticed_by_backward() -> None:
    x = parameter(1.0)
    y = (x * x).sum()
    x.grad = pullback.tensor([1.0])
    optim.SGD([x], lr=0.1).step()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_blocks_and_joined_parameters_step_like_single_ones(kind: Any) -> None:
    """Large parameters are cut into blocks and small ones joined: the elements do not notice."""
    pullback.manual_seed(0)
    large, grad = pullback.randn(40000), pullback.randn(40000)
    pieces = [(0, 3), (3, 1500), (1500, 1501), (1501, 30000), (30000, 40000)]
    whole = nn.Parameter(large.clone())
    parts = [nn.Parameter(large[a:b].clone()) for a, b in pieces]
    optimizers = [kind([whole], lr=0.1), kind(parts, lr=0.1)]
    for _ in range(3):
        whole.grad = grad.clone()
        for part, (a, b) in zip(parts, pieces, strict=True):
            part.grad = grad[a:b].clone()
        for optimizer in optimizers:
            optimizer.step()
    assert pullback.equal(whole, pullback.cat(parts))


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_memory_layout_does_not_change_a_step(kind: Any) -> None:
    pullback.manual_seed(0)
    values, grad = pullback.randn(30, 40), pullback.randn(40, 30)
    plain, transposed = nn.Parameter(values.clone()), nn.Parameter(values.t().contiguous().t())
    assert not transposed.is_contiguous()
    plain.grad, transposed.grad = grad.t().contiguous(), grad.t()
    for param in (plain, transposed):
        optimizer = kind([param], lr=0.1)
        optimizer.step()
        optimizer.step()
    assert pullback.equal(plain, transposed)


def test_groups_have_options_of_their_own() -> None:
    x, y = with_grad([0.0], [1.0]), with_grad([0.0], [1.0])
    optimizer = optim.SGD([{"params": [x]}, {"params": [y], "lr": 2.0}], lr=1.0)
    optimizer.step()
    assert (x.item(), y.item()) == (-1.0, -2.0)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [x]})


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        optim.SGD([])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        optim.SGD([parameter(1.0) * 2])
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an iterable"):
        optim.SGD(pullback.ones(1))
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optim.SGD([parameter(1.0)], lr=-1)


def test_zero_grad_drops_the_gradients_unless_told_otherwise() -> None:
    x = with_grad([1.0], [3.0])
    optimizer = optim.SGD([x])
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert x.grad is None


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_a_loaded_state_continues_as_the_saved_one(kind: Any) -> None:
    x = with_grad([1.0, -2.0], [0.5, 0.3])
    first = kind([x], lr=0.1)
    first.step()
    twin = with_grad(x.tolist(), [0.5, 0.3])
    second = kind([twin], lr=0.7)
    second.load_state_dict(first.state_dict())
    for optimizer in (first, second):
        optimizer.step()
    assert x.tolist() == twin.tolist()


def test_hooks_surround_a_step() -> None:
    x = with_grad([0.0], [1.0])
    optimizer = optim.SGD([x], lr=1.0)
    calls = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(("before", x.item())))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(("after", x.item())))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert calls == [("before", 0.0), ("after", -1.0), ("before", -1.0)]


def test_a_custom_optimizer_runs_hooks_too() -> None:
    class Nothing(optim.Optimizer):
        def step(self, closure: Any = None) -> Any:
            return 7

    optimizer = Nothing([parameter(1.0)], {})
    calls = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(args))
    assert optimizer.step() == 7
    assert calls == [(optimizer,)]


def test_gradients_flow_through_a_differentiable_step() -> None:
    rate = pullback.tensor(0.1, requires_grad=True)
    start = parameter(2.0)
    moved = start.clone()
    moved.grad = 2 * start
    optim.SGD([moved], lr=rate, differentiable=True).step()
    moved.sum().backward()
    assert rate.grad.item() == -4.0
    assert start.grad.tolist() == pytest.approx([0.8])


def test_scheduler_before_optimizer_warns() -> None:
    optimizer = optim.SGD([parameter(1.0)], lr=1.0)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        scheduler.step()
    assert scheduler.get_last_lr() == [0.5]


def test_a_schedule_continues_from_its_state() -> None:
    optimizer = optim.SGD([parameter(1.0)], lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    other = optim.SGD([parameter(1.0)], lr=1.0)
    resumed = optim.lr_scheduler.StepLR(other, 2, 0.5)
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    for o, s in ((optimizer, scheduler), (other, resumed)):
        o.step()
        s.step()
    assert scheduler.get_last_lr() == resumed.get_last_lr() == [0.25]


def test_lbfgs_finds_the_minimum_of_a_quadratic_in_one_step() -> None:
    x = parameter(3.0, -2.0)
    optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x - 1) ** 2 * pullback.tensor([1.0, 10.0])).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


def test_printed_optimizer_separates_its_groups_by_empty_lines() -> None:
    first, second = pullback.zeros(1, requires_grad=True), pullback.zeros(1, requires_grad=True)
    optimizer = pullback.optim.Adagrad([{"params": [first]}, {"params": [second], "lr": 0.5}])
    group = "\n    differentiable: False\n    eps: 1e-10\n    foreach: None\n    fused: None\n    initial_accumulator_value: 0"
    actual = repr(optimizer).split("\n\n")
    assert len(actual) == 2
    assert actual[0].startswith("Adagrad (\nParameter Group 0" + group)
    assert actual[1].startswith("Parameter Group 1" + group)
    assert actual[1].endswith("    maximize: False\n    weight_decay: 0\n)")


def test_sparse_adam_moves_only_the_rows_of_the_gradient() -> None:
    table = nn.Embedding(3, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = optim.SparseAdam(table.parameters(), lr=0.25)
    table(pullback.tensor([2, 0, 2])).sum().backward()
    optimizer.step()
    expected = before - pullback.tensor([[0.25], [0.0], [0.25]])
    pullback.testing.assert_close(table.weight.detach(), expected)
    pullback.testing.assert_close(optimizer.state[table.weight]["exp_avg"][:, 0], pullback.tensor([0.1, 0.0, 0.2]))


def test_sparse_adam_refuses_dense_gradients() -> None:
    weight = pullback.ones(2, requires_grad=True)
    weight.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        optim.SparseAdam([weight]).step()
