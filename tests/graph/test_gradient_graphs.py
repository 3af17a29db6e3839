"""The graphs of recorded gradients: where a rule of PyTorch's computes with a number, its node is that of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import grad as differentiate

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], str]] = {
    "sum of one": (lambda x: x.sum(), ((),), "Expand"),
    "mean": (lambda x: x.mean(), ((3, 4),), "Div1 Expand"),
    "mean of rows": (lambda x: x.mean(1), ((3, 4),), "Div1 Expand Unsqueeze"),
    "log2": (lambda x: x.log2(), ((3,),), "Div Mul1"),
    "unsqueeze": (lambda x: x.unsqueeze(-1), ((3,),), "Squeeze1"),
    "squeeze": (lambda x: x.squeeze(0), ((1, 3),), "Unsqueeze"),
    "mm": (lambda x, y: x @ y, ((2, 3), (3, 4)), "Mm T"),
    "mv": (lambda x, y: y.mv(x), ((3,), (2, 3)), "Mv T"),
    "var": (lambda x: x.var(), ((3, 4),), "Mul Mul1 Sub Mean"),
    "linear": (lambda x, w, b: pullback.nn.functional.linear(x, w, b), ((2, 3), (4, 3), (4,)), "Mm T T"),
    "linear of a batch": (lambda x, w: pullback.nn.functional.linear(x, w), ((2, 2, 3), (4, 3)), "View Mm View T T"),
    "mse_loss": (lambda x, y: pullback.nn.functional.mse_loss(x, y), ((3,), (3,)), "MseLossBackward"),
    "layer_norm": (lambda x: pullback.nn.functional.layer_norm(x, (3,)), ((2, 3),), "NativeLayerNormBackward"),
    "conv1d": (lambda x, w: pullback.nn.functional.conv1d(x, w), ((1, 1, 5), (1, 1, 3)), "ConvolutionBackward"),
    "norm": (lambda x: x.norm(), ((3, 4),), "Mul MaskedFill Div LinalgVectorNorm"),
    "cumsum": (lambda x: x.cumsum(0), ((3,),), "Flip Cumsum Flip"),
    "max": (lambda x: x.max(0).values, ((3, 4),), "Scatter Unsqueeze"),
    "square": (lambda x: x**2, ((3,),), "Mul Mul1 Pow"),
    "a number of the user's": (lambda x: x * 2, ((3,),), "Mul"),
    "a number that is divided": (lambda x: 2 / x, ((3,),), "Mul Neg Mul Mul Reciprocal Reciprocal"),
}


def names(node: Any) -> list[str]:
    """The names of the nodes behind a gradient but for those of leaves, each where it is first reached."""
    seen: list[Any] = [node]
    for one in seen:
        seen += [to for to, _ in one.next_functions if to is not None and to not in seen]
    shown = [one.name().replace("Backward0", "").replace("Backward1", "1") for one in seen]
    return [name for name in shown if "AccumulateGrad" not in name]


@pytest.mark.parametrize("name", CASES)
def test_names_of_the_nodes_of_a_gradient(name: str) -> None:
    function, shapes, expected = CASES[name]
    inputs = [pullback.rand(shape, dtype=pullback.float64).requires_grad_() for shape in shapes]
    result = function(*inputs)
    grad = pullback.ones_like(result).requires_grad_()
    (gradient,) = differentiate(result, inputs[:1], grad, create_graph=True)
    assert " ".join(names(gradient.grad_fn)) == expected
