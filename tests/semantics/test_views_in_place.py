"""Views and in-place operations against an out-of-place reference, in random order.

The machine keeps a base and views of it. The reference keeps the base as one flat tensor and each view as the positions
of its elements: an in-place operation becomes an index_put on a new flat tensor. Values and gradients must agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import pullback

SHAPE = (2, 3, 2)
SIZE = 12


class ViewsInPlace(RuleBasedStateMachine):
    """Random views, in-place operations and uses of views."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        values = rng.uniform(0.5, 1.5, SIZE)
        self.leaves = [pullback.tensor(values, requires_grad=True) for _ in range(2)]
        self.factors = [pullback.tensor(1.25, dtype=pullback.float64, requires_grad=True) for _ in range(2)]
        self.base = self.leaves[0].view(SHAPE) * 1
        self.flat = self.leaves[1] * 1
        self.views: list[tuple[Any, Any]] = [(self.base, np.arange(SIZE).reshape(SHAPE))]
        self.losses = [pullback.zeros((), dtype=pullback.float64) for _ in range(2)]

    def pick(self, number: int) -> tuple[Any, Any]:
        return self.views[number % len(self.views)]

    def add_view(self, view: Any, positions: Any) -> None:
        assert tuple(view.shape) == positions.shape
        if len(self.views) < 12:
            self.views.append((view, positions))

    def write(self, positions: Any, values: Any) -> None:
        index = pullback.tensor(positions.reshape(-1))
        self.flat = self.flat.index_put((index,), values.reshape(-1))

    def read(self, positions: Any) -> Any:
        return self.flat[pullback.tensor(positions.reshape(-1))].reshape(positions.shape)

    @rule(number=st.integers(0, 50), dim=st.integers(0, 2), index=st.integers(0, 2))
    def select(self, number: int, dim: int, index: int) -> None:
        view, positions = self.pick(number)
        if positions.ndim > dim and positions.shape[dim] > index:
            self.add_view(view.select(dim, index), positions.take(index, dim))

    @rule(number=st.integers(0, 50), start=st.integers(0, 2), stop=st.integers(1, 3), step=st.integers(1, 2))
    def slice(self, number: int, start: int, stop: int, step: int) -> None:
        view, positions = self.pick(number)
        if positions.ndim:
            self.add_view(view[start:stop:step], positions[start:stop:step])

    @rule(number=st.integers(0, 50))
    def transpose(self, number: int) -> None:
        view, positions = self.pick(number)
        if positions.ndim > 1:
            self.add_view(view.transpose(0, -1), positions.swapaxes(0, -1))

    @rule(number=st.integers(0, 50))
    def flatten(self, number: int) -> None:
        view, positions = self.pick(number)
        if view.is_contiguous():
            self.add_view(view.view(-1), positions.reshape(-1))

    @rule(number=st.integers(0, 50))
    def diagonal(self, number: int) -> None:
        view, positions = self.pick(number)
        if positions.ndim > 1:
            self.add_view(view.diagonal(), positions.diagonal())

    @rule(number=st.integers(0, 50))
    def unsqueeze(self, number: int) -> None:
        view, positions = self.pick(number)
        self.add_view(view.unsqueeze(-1), positions[..., None])

    @rule(number=st.integers(0, 50), amount=st.floats(-1, 1))
    def add_number(self, number: int, amount: float) -> None:
        view, positions = self.pick(number)
        self.write(positions, self.read(positions) + amount)
        view.add_(amount)

    @rule(number=st.integers(0, 50))
    def multiply_by_leaf(self, number: int) -> None:
        view, positions = self.pick(number)
        self.write(positions, self.read(positions) * self.factors[1])
        view.mul_(self.factors[0])

    @rule(number=st.integers(0, 50), name=st.sampled_from(["sin_", "cos_", "neg_", "zero_", "square_"]))
    def unary(self, number: int, name: str) -> None:
        view, positions = self.pick(number)
        value = self.read(positions)
        self.write(positions, value * 0 if name == "zero_" else getattr(value, name[:-1])())
        getattr(view, name)()

    @rule(number=st.integers(0, 50), other=st.integers(0, 50))
    def copy(self, number: int, other: int) -> None:
        (view, positions), (source, from_positions) = self.pick(number), self.pick(other)
        if positions.shape == from_positions.shape:
            self.write(positions, self.read(from_positions))
            view.copy_(source.clone())

    @rule(number=st.integers(0, 50), index=st.integers(0, 2))
    def assign(self, number: int, index: int) -> None:
        view, positions = self.pick(number)
        if positions.ndim and positions.shape[0] > index:
            self.write(
                positions[index], self.factors[1] * pullback.ones(positions[index].shape, dtype=pullback.float64)
            )
            view[index] = self.factors[0]

    @rule(number=st.integers(0, 50))
    def use(self, number: int) -> None:
        view, positions = self.pick(number)
        weights = pullback.arange(1.0, 1.0 + positions.size, dtype=pullback.float64).reshape(positions.shape)
        self.losses[0] = self.losses[0] + (view * weights).sum()
        self.losses[1] = self.losses[1] + (self.read(positions) * weights).sum()

    @invariant()
    def values_agree(self) -> None:
        for view, positions in self.views:
            np.testing.assert_allclose(view.detach().numpy(), self.read(positions).detach().numpy(), rtol=1e-12)

    @precondition(lambda self: self.losses[0].requires_grad)
    @rule(create_graph=st.booleans())
    def gradients_agree(self, create_graph: bool) -> None:
        grads = [
            pullback.autograd.grad(
                loss, [leaf, factor], retain_graph=True, create_graph=create_graph, allow_unused=True,
                materialize_grads=True,
            )
            for loss, leaf, factor in zip(self.losses, self.leaves, self.factors, strict=True)
        ]  # fmt: skip
        for actual, expected in zip(*grads, strict=True):
            np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9)

    def teardown(self) -> None:
        if self.losses[0].requires_grad:
            self.use(0)
            self.gradients_agree(create_graph=False)


TestViewsInPlace = ViewsInPlace.TestCase
TestViewsInPlace.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
