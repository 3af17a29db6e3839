"""A tenth of all operations' samples inside of a compiled function; `make compiled-operations` runs them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.compiling import recorder
from tests.compiling.operations import compare
from tests.derivatives.sampling import Sample, normal
from tests.derivatives.test_derivatives import SAMPLES


@pytest.fixture
def deterministic() -> Iterator[None]:
    pullback.use_deterministic_algorithms(True)
    yield
    pullback.use_deterministic_algorithms(False)


@pytest.mark.parametrize("sample", SAMPLES[::10], ids=lambda sample: sample.name)
def test_operation_gives_the_same_compiled(sample: Sample) -> None:
    compare(sample)


@pytest.mark.parametrize("sample", SAMPLES[3::12], ids=lambda sample: sample.name)
def test_deterministic_algorithms_give_the_bits_of_eager(sample: Sample, deterministic: None) -> None:
    compare(sample, calls=3, exactly=True)


def _broadcast(x: Any, y: Any) -> Any:
    return x * y


def _counted(x: Any, y: Any, count: Any) -> Any:
    count += 1
    return x * y


def _gradient_of_another_layout(function: Any, *more: Any) -> Any:
    """Of an operand that was broadcast: the order of its sum follows the memory of the gradient."""
    pullback.manual_seed(0)
    x, y = pullback.randn(40, 50).t().requires_grad_(), pullback.randn(50, 1, requires_grad=True)
    return pullback.autograd.grad(function(x, y, *more), y, pullback.randn(50, 40))[0].numpy().tobytes()


def test_gradients_of_another_layout_have_the_bits_of_eager(deterministic: None) -> None:
    compiled = pullback.compile(_broadcast)
    assert {_gradient_of_another_layout(compiled) for _ in range(4)} == {_gradient_of_another_layout(_broadcast)}


def test_what_cannot_have_the_bits_of_eager_says_so_before_it_runs(deterministic: None) -> None:
    compiled, count = pullback.compile(_counted), pullback.zeros(())
    with pytest.raises(RuntimeError, match="does not have a deterministic implementation, but you set"):
        _gradient_of_another_layout(compiled, count)
    pullback.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="CompiledFunctionBackward, of a function that writes"):
        _gradient_of_another_layout(compiled, count)


def test_a_program_that_misses_a_write_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(whole: object, *args: object, **options: object) -> object:
        return whole

    def write(x: pullback.Tensor) -> pullback.Tensor:
        y = x * 1
        y[0] = 0.0
        return y * y

    monkeypatch.setattr(recorder, "written", written)
    with pytest.raises(AssertionError):
        compare(Sample("write", write, (normal(3),)))
