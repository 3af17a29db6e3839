"""Code of the user's that backward calls may raise anything: it arrives as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

ERRORS = (
    StopIteration, TypeError, AttributeError, IndexError, KeyError, ValueError, GeneratorExit, MemoryError, OverflowError,
    KeyboardInterrupt,
)  # fmt: skip


def raising(kind: type[BaseException]) -> Callable[..., Any]:
    def hook(*values: Any) -> Any:
        raise kind("from the hook")

    return hook


RUNS: dict[str, Callable[[Any, Any], Any]] = {
    "Tensor.backward": lambda y, x: y.sum().backward(),
    "autograd.backward": lambda y, x: pullback.autograd.backward(y.sum()),
    "autograd.grad": lambda y, x: pullback.autograd.grad(y.sum(), x),
    "create_graph": lambda y, x: pullback.autograd.grad(y.sum(), x, create_graph=True),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("kind", ERRORS)
def test_what_a_hook_raises_arrives(kind: type[BaseException], run: Callable[[Any, Any], Any]) -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(raising(kind))
    with pytest.raises(kind, match="from the hook") as raised:
        run(y, x)
    assert type(raised.value) is kind


@pytest.mark.parametrize("kind", ERRORS)
def test_what_an_unpack_hook_raises_arrives(kind: type[BaseException]) -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t, raising(kind)):
        y = (x * x).sum()
    with pytest.raises(kind, match="from the hook") as raised:
        y.backward()
    assert type(raised.value) is kind


@pytest.mark.parametrize("kind", ERRORS)
def test_what_a_pack_hook_raises_arrives(kind: type[BaseException]) -> None:
    x = pullback.ones(2, requires_grad=True)
    hooks = pullback.autograd.graph.saved_tensors_hooks(raising(kind), lambda t: t)
    with hooks, pytest.raises(kind, match="from the hook") as raised:
        x.softmax(0)
    assert type(raised.value) is kind


@pytest.mark.parametrize("kind", ERRORS)
def test_what_a_function_of_apply__raises_arrives(kind: type[BaseException]) -> None:
    with pytest.raises(kind, match="from the hook") as raised:
        pullback.ones(2).apply_(raising(kind))
    assert type(raised.value) is kind


def test_a_wrong_argument_is_still_explained() -> None:
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        pullback.ones(2).dot("a")
