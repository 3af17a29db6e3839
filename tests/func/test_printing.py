"""Tensors inside of running transforms print as PyTorch's wrappers do; the texts were recorded from PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.func import grad, hessian, jacfwd, jvp, vmap

BATCH = "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"


def wrapped(*openings: str, text: str) -> str:
    """`text` inside of the wrappers, the outermost first."""
    for opening in reversed(openings):
        text = f"{opening}\n" + "\n".join(f"    {line}" if line else "" for line in text.split("\n")) + "\n)"
    return text


def seen(run: Callable[[Callable[[Any], Any]], Any]) -> str:
    """What a tensor looks like to the function inside of the transforms that `run` makes."""
    texts: list[str] = []

    def look(x: Any) -> Any:
        texts.append(repr(x))
        return (x * x).sum()

    run(look)
    return texts[0]


BATCHED, TRACKED = "BatchedTensor(lvl={}, bdim=0, value=".format, "GradTrackingTensor(lvl={}, value=".format


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda f: grad(f)(pullback.tensor([1.0, 2.0])), wrapped(TRACKED(1), text="tensor([1., 2.])")),
        (lambda f: vmap(f)(pullback.ones(2, 3)), wrapped(BATCHED(1), text=BATCH)),
        (lambda f: vmap(grad(f))(pullback.ones(2, 3)), wrapped(TRACKED(2), BATCHED(1), text=BATCH)),
        (lambda f: grad(lambda x: vmap(f)(x).sum())(pullback.ones(2, 3)), wrapped(BATCHED(2), TRACKED(1), text=BATCH)),
        (
            lambda f: grad(lambda x: grad(f)(x))(pullback.tensor(2.0)),
            wrapped(TRACKED(2), TRACKED(1), text="tensor(2.)"),
        ),
        (
            lambda f: jvp(f, (pullback.ones(2),), (pullback.ones(2),)),
            wrapped(TRACKED(1), text="tensor([1., 1.])"),
        ),
        (lambda f: jacfwd(f)(pullback.tensor([1.0, 2.0])), wrapped(TRACKED(2), text="tensor([1., 2.])")),
        (lambda f: hessian(f)(pullback.tensor([1.0, 2.0])), wrapped(TRACKED(3), TRACKED(2), text="tensor([1., 2.])")),
    ],
)
def test_a_tensor_prints_as_the_wrappers_of_its_transforms(run: Any, expected: str) -> None:
    assert seen(run) == expected


def test_a_graph_outside_of_the_transform_is_shown_inside() -> None:
    w = pullback.tensor([3.0], requires_grad=True)
    expected = wrapped(TRACKED(1), text="tensor([3., 6.], grad_fn=<MulBackward0>)")
    assert seen(lambda f: grad(lambda x: f(w * x))(pullback.tensor([1.0, 2.0]))) == expected
    assert seen(lambda f: grad(f)(w)) == wrapped(TRACKED(1), text="tensor([3.], requires_grad=True)")


def test_a_tensor_that_outlived_its_transform_says_so() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return (x * x).sum()

    grad(keep)(pullback.tensor([1.0, 2.0]))
    assert repr(kept[0]) == wrapped(TRACKED(-2), text="tensor([1., 2.])")
