"""What kernels compute for one element, read from their text: a kernel that is not read runs beside the fused loops."""

from __future__ import annotations

import pytest

import pullback
from pullback.compiling.elements import read_call
from pullback.expressions.tree import REAL, Load


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("kernels.trigonometric", "sin", 1),
        ("generated.trigonometric", "sin_grad_of_input", 2),  # calls a kernel of another file
        ("generated.exponential", "log_grad_of_input", 2),
    ],
)
def test_kernels_are_read_as_expressions(module: str, name: str, count: int) -> None:
    operands = tuple([Load(f"operand_{number}", REAL) for number in range(count)])
    assert read_call(f"pullback.{module}", name, operands, {}) is not None


def test_gradients_of_parts_are_added_by_loops() -> None:
    weight, x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), pullback.tensor([2.0, 3.0])

    def gradient(x: pullback.Tensor) -> pullback.Tensor:
        total = (weight[0] * x + weight[1] * weight[0] + weight[:, 1]).sum()
        return pullback.autograd.grad(total, weight)[0]

    compiled = pullback.compile(gradient)
    for _ in range(4):
        assert compiled(x).tolist() == [[5.0, 8.0], [1.0, 3.0]]
    (kind,) = compiled.kinds.values()
    assert "kernel indexing" not in kind.entries[0].run_forward.describe()
