"""What is registered for operators of libraries by their names."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import library


@pytest.fixture
def scale() -> Any:
    own = library.Library("registration_test", "DEF")
    own.define("scale(Tensor x, float by=2.0, *, bool negative=False) -> Tensor")
    own.impl("scale", lambda x, by, *, negative: x * (-by if negative else by), "CPU")
    yield pullback.ops.registration_test.scale
    own._destroy()


def test_operators_of_a_schema_get_a_backward(scale: Any) -> None:
    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by, ctx.negative = inputs[1], keyword_only_inputs["negative"]

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.by * (100 if ctx.negative else 10), None

    library.register_autograd("registration_test::scale", backward, setup_context=setup_context)
    x = pullback.ones(2, requires_grad=True)
    y = scale(x) + scale(x, by=3.0, negative=True)
    y.sum().backward()
    assert y.tolist() == [-1.0, -1.0]
    assert x.grad.tolist() == [320.0, 320.0]


def test_kernels_of_devices_replace_each_other(scale: Any) -> None:
    library.register_kernel("registration_test::scale", "cpu")(lambda x, by=1.0, negative=False: x + by)
    assert scale(pullback.zeros(1)).tolist() == [1.0]


def test_registering_for_an_operator_that_is_not_there_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pullback.ops, "refused_libraries", [])
    with pytest.raises(RuntimeError, match="operator registration_test::nothing does not exist"):
        library.register_fake("registration_test::nothing", lambda x: x)


def test_registering_for_refused_operators_comes_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pullback.ops, "refused_libraries", ["compiled.so"])

    @library.register_fake("registration_test::nothing")
    def fake(x: Any) -> Any:
        return x

    library.register_autograd("registration_test::nothing", lambda ctx, grad: grad)
    assert fake(1) == 1
    assert not hasattr(pullback.ops.registration_test, "nothing")
