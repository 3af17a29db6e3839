"""Optimizers and schedules against PyTorch's, step by step; state dicts go both ways."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")

SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (5,), (), (70, 300))
OPTIMIZERS = (
    "SGD(lr=.1) SGD(lr=.1,momentum=.9) SGD(lr=.1,momentum=.9,dampening=.3,weight_decay=.1) "
    "SGD(lr=.1,momentum=.9,nesterov=True,maximize=True,foreach=True) Adam() Adam(amsgrad=True,foreach=True) "
    "Adam(weight_decay=.1,maximize=True) Adam(weight_decay=.1,decoupled_weight_decay=True) AdamW() AdamW(amsgrad=True) "
    "Adamax() Adamax(weight_decay=.1) NAdam() NAdam(weight_decay=.1,decoupled_weight_decay=True) RAdam() "
    "RAdam(betas=(.9,.8),weight_decay=.1) RMSprop() RMSprop(momentum=.9) RMSprop(centered=True,weight_decay=.1) "
    "RMSprop(centered=True,momentum=.5) Rprop() Rprop(maximize=True) Adadelta() Adadelta(weight_decay=.1) Adagrad() "
    "Adagrad(lr_decay=.1,initial_accumulator_value=.3) ASGD() ASGD(t0=2,lambd=.01,weight_decay=.1) Adafactor() "
    "Adafactor(weight_decay=.1,lr=.1)"
).split()
REAL_ONLY = ("Adafactor",)


def arrays(generator: np.random.RandomState, dtype: str) -> list[Any]:
    values = [np.asarray(generator.standard_normal(shape)) for shape in SHAPES]
    if dtype.startswith("complex"):
        values = [value + 1j * np.asarray(generator.standard_normal(value.shape)) for value in values]
    return [value.astype(dtype) for value in values]


def make(library: Any, text: str, params: list[Any]) -> Any:
    return eval(f"optim.{text.replace('(', '(params, ', 1)}", {"optim": library.optim, "params": params})


class Training:
    """Parameters, gradients from a seed, and an optimizer."""

    def __init__(self, library: Any, text: str, dtype: str = "float32") -> None:
        self.library, self.dtype = library, dtype
        self.generator = np.random.RandomState(0)
        self.params = [library.nn.Parameter(library.tensor(value)) for value in arrays(self.generator, dtype)]
        self.optimizer = make(library, text, self.params)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            for param, value in zip(self.params, arrays(self.generator, self.dtype), strict=True):
                param.grad = self.library.tensor(value)
            self.optimizer.step()

    def values(self) -> list[Any]:
        return [param.detach().numpy().copy() for param in self.params]


def check_close(actual: list[Any], expected: list[Any], tolerance: float = 5e-6) -> None:
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def to_library(value: Any, library: Any) -> Any:
    """A state dict of one library for the other."""
    if hasattr(value, "detach"):
        return library.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: to_library(v, library) for key, v in value.items()}
    if isinstance(value, list):
        return [to_library(v, library) for v in value]
    return value


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("text", OPTIMIZERS)
def test_steps_equal_those_of_pytorch(text: str, dtype: str) -> None:
    if dtype == "complex64" and text.startswith(REAL_ONLY):
        pytest.skip("real parameters only")
    ours, theirs = Training(pullback, text, dtype), Training(torch, text, dtype)
    for training in (ours, theirs):
        training.run(6)
    check_close(ours.values(), theirs.values())
    assert repr(ours.optimizer) == repr(theirs.optimizer)
    state, expected = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
    assert state["param_groups"] == expected["param_groups"]
    assert {k: list(v) for k, v in state["state"].items()} == {k: list(v) for k, v in expected["state"].items()}
    for number, values in expected["state"].items():
        for name, value in values.items():
            assert str(state["state"][number][name].dtype).rpartition(".")[2] == str(value.dtype).rpartition(".")[2]
            np.testing.assert_allclose(state["state"][number][name].numpy(), value.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_state_dicts_go_to_pytorch_and_back(text: str) -> None:
    ours, theirs = Training(pullback, text), Training(torch, text)
    for training in (ours, theirs):
        training.run(3)
    state_of_ours = to_library(ours.optimizer.state_dict(), torch)
    ours.optimizer.load_state_dict(to_library(theirs.optimizer.state_dict(), pullback))
    theirs.optimizer.load_state_dict(state_of_ours)
    for training in (ours, theirs):
        training.run(3)
    check_close(ours.values(), theirs.values(), 2e-5)


DIFFERENTIABLE = (
    "SGD(lr=.1,momentum=.9,differentiable=True) Adam(lr=.1,differentiable=True) Adamax(lr=.1,differentiable=True) "
    "RMSprop(lr=.1,differentiable=True,centered=True,momentum=.3) Adadelta(differentiable=True) "
    "Adagrad(lr=.1,differentiable=True) NAdam(lr=.1,differentiable=True) RAdam(lr=.1,differentiable=True) "
    "ASGD(lr=.1,differentiable=True) Rprop(lr=.1,differentiable=True) AdamW(lr=.1,differentiable=True,amsgrad=True)"
).split()


# PyTorch refuses backward through a second step of these.
ONCE = ("Adamax", "RMSprop", "Rprop", "AdamW")


@pytest.mark.parametrize("text", DIFFERENTIABLE)
def test_gradients_flow_through_steps_as_in_pytorch(text: str) -> None:
    grads = []
    for library in (pullback, torch):
        start = library.tensor([1.0, -2.0, 0.5], dtype=library.float64, requires_grad=True)
        scale = library.tensor([0.3, 0.2, 0.7], dtype=library.float64, requires_grad=True)
        param = start.clone()
        optimizer = make(library, text, [param])
        for step in range(1 if text.startswith(ONCE) else 3):
            param.grad = scale * start**2 + step
            optimizer.step()
        (param**2).sum().backward()
        grads.append((start.grad.numpy(), scale.grad.numpy()))
    check_close(list(grads[0]), list(grads[1]), 2e-5)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize(
    "options", [{}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.5, "history_size": 2, "max_iter": 7}]
)
def test_lbfgs_takes_the_steps_of_pytorch(options: dict[str, Any]) -> None:
    results = []
    for library in (pullback, torch):
        param = library.nn.Parameter(library.tensor([-1.2, 1.0, 0.7], dtype=library.float64))
        optimizer = library.optim.LBFGS([param], **options)
        losses = []

        def closure(param: Any = param, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((1 - param[:-1]) ** 2 + 100 * (param[1:] - param[:-1] ** 2) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            losses.append(optimizer.step(closure).item())
        state = optimizer.state_dict()["state"][0]
        results.append((losses, param.detach().numpy().tolist(), state["func_evals"], state["n_iter"]))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4)
    assert results[0][2:] == results[1][2:]


Schedule = Callable[[Any, Any, Any], Any]
SCHEDULES: dict[str, Schedule] = {
    "LambdaLR": lambda L, o, t: L.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda L, o, t: L.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda L, o, t: L.StepLR(o, 4, 0.5),
    "MultiStepLR": lambda L, o, t: L.MultiStepLR(o, [3, 5, 5, 9]),
    "ConstantLR": lambda L, o, t: L.ConstantLR(o),
    "LinearLR": lambda L, o, t: L.LinearLR(o, 0.2, 0.8, 7),
    "ExponentialLR": lambda L, o, t: L.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda L, o, t: L.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda L, o, t: L.CosineAnnealingLR(o, 7, 0.01),
    "CosineAnnealingWarmRestarts": lambda L, o, t: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "OneCycleLR": lambda L, o, t: L.OneCycleLR(o, [1.0, 2.0], 25),
    "OneCycleLR in three phases": lambda L, o, t: L.OneCycleLR(o, 1.0, 25, three_phase=True, anneal_strategy="linear"),
    "CyclicLR": lambda L, o, t: L.CyclicLR(o, 0.01, 1.0, 3, 4),
    "CyclicLR that halves": lambda L, o, t: L.CyclicLR(o, 0.01, 1.0, 3, 4, mode="triangular2"),
    "CyclicLR that decays": lambda L, o, t: L.CyclicLR(o, 0.01, 1.0, 3, 4, mode="exp_range", gamma=0.9),
    "SequentialLR": lambda L, o, t: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 3), L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, 5)], [3, 8]
    ),
    "ChainedScheduler": lambda L, o, t: L.ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)]),
    "SWALR": lambda L, o, t: t.optim.swa_utils.SWALR(o, [0.05, 0.2], 5),
}


def two_groups(library: Any) -> Any:
    groups = [
        {"params": [library.nn.Parameter(library.ones(2))]},
        {"params": [library.nn.Parameter(library.ones(2))], "lr": 0.3},
    ]
    return library.optim.SGD(groups, lr=0.1, momentum=0.9)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_gives_the_rates_of_pytorch(name: str) -> None:
    runs = []
    for library in (pullback, torch):
        optimizer = two_groups(library)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer, library)
            rates = []
            for _ in range(25):
                optimizer.step()
                scheduler.step()
                rates += [[g["lr"], g["momentum"]] for g in optimizer.param_groups] + [list(scheduler.get_last_lr())]
        runs.append((rates, scheduler.state_dict(), [str(w.message) for w in caught]))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "options", [{"patience": 2}, {"mode": "max", "patience": 1, "threshold_mode": "abs", "cooldown": 2, "min_lr": 0.01}]
)
def test_the_plateau_schedule_gives_the_rates_of_pytorch(options: dict[str, Any]) -> None:
    metrics = np.random.RandomState(0).rand(25)
    runs = []
    for library in (pullback, torch):
        optimizer = two_groups(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for metric in metrics:
            scheduler.step(metric)
            rates.append(list(scheduler.get_last_lr()))
        runs.append((rates, scheduler.state_dict()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kind", ["swa", "ema"])
def test_an_averaged_model_equals_that_of_pytorch(kind: str) -> None:
    results = []
    for library in (pullback, torch):
        library.manual_seed(0)
        utilities = library.optim.swa_utils
        model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
        average = utilities.get_ema_multi_avg_fn(0.9) if kind == "ema" else None
        averaged = utilities.AveragedModel(model, multi_avg_fn=average, use_buffers=kind == "ema")
        for _ in range(3):
            for param in model.parameters():
                param.data = param.data + library.rand(param.shape)
            averaged.update_parameters(model)
        utilities.update_bn([library.rand(4, 2) for _ in range(3)], averaged)
        results.append({name: value.numpy() for name, value in averaged.state_dict().items()})
    assert list(results[0]) == list(results[1])
    check_close(list(results[0].values()), list(results[1].values()))


ERRORS: list[Callable[[Any], Any]] = [
    lambda t: t.optim.SGD([], 0.1),
    lambda t: t.optim.SGD(t.ones(2), 0.1),
    lambda t: t.optim.SGD([t.ones(2, requires_grad=True) * 2], 0.1),
    lambda t: t.optim.SGD([3], 0.1),
    lambda t: t.optim.SGD([{"params": {t.ones(2)}}], 0.1),
    lambda t: t.optim.SGD([t.ones(2)], -1),
    lambda t: t.optim.SGD([t.ones(2)], nesterov=True),
    lambda t: t.optim.SGD([("a", t.ones(2)), t.ones(3)]),
    lambda t: t.optim.Adam([t.ones(2)], betas=(1, 2)),
    lambda t: t.optim.Adam([t.ones(2)], eps=-1),
    lambda t: t.optim.Adam([t.ones(2)], fused=True, foreach=True),
    lambda t: t.optim.Adam([t.ones(2)], fused=True, differentiable=True),
    lambda t: t.optim.Adam([t.ones(2)], lr=t.tensor(0.1), foreach=True),
    lambda t: t.optim.Rprop([t.ones(2)], etas=(2.0, 3.0)),
    lambda t: t.optim.LBFGS([{"params": [t.ones(2)]}, {"params": [t.ones(3)]}]),
    lambda t: two_groups(t).load_state_dict({"state": {}, "param_groups": []}),
    lambda t: two_groups(t).load_state_dict({"state": {}, "param_groups": [{"params": [1, 2]}, {"params": []}]}),
    lambda t: two_groups(t).add_param_group(3),
    lambda t: two_groups(t).add_param_group({"params": two_groups(t).param_groups[0]["params"] * 1, "lr": -1}).x,
    lambda t: t.optim.lr_scheduler.StepLR(3, 3),
    lambda t: t.optim.lr_scheduler.OneCycleLR(two_groups(t), 1.0),
    lambda t: t.optim.lr_scheduler.OneCycleLR(two_groups(t), 1.0, total_steps=3, anneal_strategy="x"),
    lambda t: t.optim.lr_scheduler.ReduceLROnPlateau(two_groups(t), factor=1.0),
    lambda t: t.optim.lr_scheduler.ReduceLROnPlateau(two_groups(t), mode="x"),
    lambda t: t.optim.lr_scheduler.CyclicLR(two_groups(t), 0.1, 1.0, mode="x"),
    lambda t: t.optim.lr_scheduler.SequentialLR(two_groups(t), [], []),
    lambda t: t.optim.lr_scheduler.ChainedScheduler([]),
    lambda t: t.optim.lr_scheduler.LambdaLR(two_groups(t), [1]),
]


@pytest.mark.parametrize("position", range(len(ERRORS)))
def test_wrong_arguments_raise_what_pytorch_raises(position: int) -> None:
    messages = []
    for library in (pullback, torch):
        with pytest.raises((ValueError, TypeError, RuntimeError, KeyError, AttributeError)) as caught:
            ERRORS[position](library)
        messages.append((caught.type, re.split("[.:,] ", str(caught.value).replace("pullback.", "torch."))[0]))
    assert messages[0] == messages[1]
