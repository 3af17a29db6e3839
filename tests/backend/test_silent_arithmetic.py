"""NumPy says nothing of infinities and nan where it computes for pullback, and goes on as the program wants elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from tests.cases import each_case, named
from tests.derivatives.checks import outputs_of
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import SAMPLES

ODD = np.array([0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 2e-38, 1.0, -1.0], np.float32)


@pytest.fixture(autouse=True)
def errors_are_raised() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


def _differentiate(sample: Sample, arrays: list[Any]) -> None:
    tensors = [pullback.tensor(array, requires_grad=True) for array in arrays]
    outputs = [output for output in outputs_of(sample.call, tensors) if output.requires_grad]
    ones = [pullback.ones_like(output) for output in outputs]
    grads = pullback.autograd.grad(outputs, tensors, ones, create_graph=True, allow_unused=True)
    sums = [grad.abs().sum() for grad in grads if grad is not None and grad.requires_grad]
    if sums:
        pullback.autograd.grad(sums, tensors, allow_unused=True)


def _push_forward(sample: Sample, arrays: list[Any]) -> None:
    tensors = tuple([pullback.tensor(array) for array in arrays])
    ones = tuple([pullback.ones_like(tensor) for tensor in tensors])
    pullback.func.jvp(lambda *inputs: tuple(outputs_of(sample.call, inputs)), tensors, ones)


@each_case(named("sample", SAMPLES, lambda sample: sample.name))
@pytest.mark.parametrize("run", [_differentiate, _push_forward])
def test_operations_are_silent(run: Callable[[Sample, list[Any]], None], sample: Sample) -> None:
    arrays = [np.resize(ODD, np.shape(array)) for array in sample.arrays()]
    with suppress(
        RuntimeError, ValueError
    ):  # some refuse such numbers, as PyTorch does; NumPy's is a FloatingPointError
        run(sample, arrays)


def _odd() -> Any:
    return pullback.tensor(ODD)


def _accumulate() -> None:
    leaf = pullback.tensor([3e38], requires_grad=True)
    leaf.grad = pullback.tensor([3e38])
    (leaf * 1).backward()


def _step(kind: Any, **options: Any) -> None:
    parameter = nn.Parameter(_odd())
    parameter.grad = _odd() * 10
    optimizer = kind([parameter], **options)
    optimizer.step(lambda: (parameter * 0).sum())


OTHERS: dict[str, Callable[[], Any]] = {
    "numbers": lambda: pullback.tensor([1e39, 1e-50, 1e5]).half(),
    "integers": lambda: _odd().int(),
    "in place": lambda: _odd().div_(0).mul_(1e20),
    "out": lambda: pullback.mul(_odd(), _odd(), out=_odd()),
    "reversed": lambda: 1 / _odd() + 2 ** _odd(),
    "empty": lambda: pullback.zeros(0).mean(),
    "halves": lambda: pullback.tensor([6e4]).half() * 2,
    "printed": lambda: repr(_odd() * 1e10),
    "ranges": lambda: (pullback.linspace(-3e38, 3e38, 5), pullback.logspace(0, 60, 5)),
    "accumulated": _accumulate,
    "running statistics": lambda: nn.BatchNorm1d(9)(pullback.stack([_odd(), _odd()])),
    "recurrent": lambda: nn.LSTM(9, 2)(_odd()[None]),
    "compiled": lambda: pullback.compile(lambda x: x * 1e10 / 0)(_odd()),
    "batched": lambda: pullback.func.vmap(lambda x: x * 1e10 / 0)(_odd()),
    "Adam": lambda: _step(pullback.optim.Adam, lr=1e30),
    "NAdam": lambda: _step(pullback.optim.NAdam, lr=1e30),
    "LBFGS": lambda: _step(pullback.optim.LBFGS, lr=1.0),
}


@pytest.mark.parametrize("action", OTHERS.values(), ids=list(OTHERS))
def test_what_computes_outside_of_operations_is_silent(action: Callable[[], Any]) -> None:
    action()


def test_other_threads_are_silent() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with np.errstate(all="raise"):
                (pullback.tensor([3e38], requires_grad=True) * 10).acosh().backward()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert raised == []


def test_a_program_keeps_its_own_setting() -> None:
    pullback.tensor([0.0]).acosh()
    with pytest.raises(FloatingPointError):
        np.ones(1) / np.zeros(1)


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_run_with_the_settings_of_the_program(register: str) -> None:
    leaf = pullback.ones(1, requires_grad=True)
    getattr(leaf, register)(lambda grad: np.ones(1) / np.zeros(1))
    with pytest.raises(FloatingPointError):
        leaf.sum().backward()


def test_functions_run_with_the_settings_of_the_program() -> None:
    class Divide(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: Any) -> Any:
            return input.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            np.ones(1) / np.zeros(1)
            return grads[0]

    with pytest.raises(FloatingPointError):
        Divide.apply(pullback.ones(1, requires_grad=True)).sum().backward()
