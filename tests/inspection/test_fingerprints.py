"""The same bits for any number of threads and ways of running; the first operation at which two runs differ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.inspection.fingerprints import RunDifference, first_difference, grad_fingerprint, recorded_run
from pullback.modes import determinism
from pullback.utils.checkpoint import checkpoint


def model() -> Any:
    pullback.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 300), nn.LayerNorm(300),
        nn.GELU(), nn.Linear(300, 10),
    )  # fmt: skip


def fingerprint(run: Any = None, hooks: bool = False) -> str:
    network = model()
    x = pullback.randn(64, 3, 8, 8)
    if hooks:
        for parameter in network.parameters():
            parameter.register_hook(lambda grad: grad.clone())
        network[4].register_full_backward_hook(lambda module, grads, outputs: None)
    y = network(x) if run is None else run(network, x)
    nn.functional.cross_entropy(y, pullback.arange(64) % 10).backward()
    return grad_fingerprint(network)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = pullback.get_num_threads()
    yield pullback.set_num_threads
    pullback.set_num_threads(before)


def test_any_number_of_threads_gives_the_same_bits(threads: Any) -> None:
    prints = set()
    for count in (1, 2, 3, 4):
        threads(count)
        prints.add(fingerprint())
    assert len(prints) == 1


@pytest.mark.parametrize("dtype", [pullback.float32, pullback.float64])
def test_long_scalar_products_do_not_depend_on_threads(threads: Any, dtype: Any) -> None:
    pullback.manual_seed(0)
    x = pullback.randn(200_003, dtype=dtype)
    bits = set()
    for count in (1, 2, 3, 4):
        threads(count)
        bits.add(x.dot(x).item())
    assert len(bits) == 1
    assert bits.pop() == pytest.approx(float((x.double() * x.double()).sum()), rel=1e-5)


def complex_product() -> Any:
    a = pullback.randn(1, 100_001, dtype=pullback.complex128)
    return a @ pullback.randn(100_001, 2, dtype=pullback.complex128)


def square() -> Any:
    x = pullback.randn(300, 409, dtype=pullback.float64)
    return x @ x.mT


def factorized() -> Any:
    x = pullback.randn(200, 200, dtype=pullback.float64)
    return pullback.linalg.cholesky(x @ x.mT + pullback.eye(200, dtype=pullback.float64))


def solved() -> Any:
    x = pullback.randn(200, 200, dtype=pullback.float64)
    return pullback.linalg.solve(x, x[:, :40])


@pytest.mark.parametrize("compute", [complex_product, square, factorized, solved])
def test_deterministic_algorithms_make_linear_algebra_independent_of_threads(threads: Any, compute: Any) -> None:
    pullback.use_deterministic_algorithms(True)
    try:
        bits = set()
        for count in (1, 2, 3, 4):
            threads(count)
            pullback.manual_seed(0)
            bits.add(compute().numpy().tobytes())
    finally:
        pullback.use_deterministic_algorithms(False)
    assert len(bits) == 1


def test_a_library_that_cannot_be_told_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "set_blas_threads", lambda count: False)
    with pytest.raises(RuntimeError, match="do not have a deterministic implementation"):
        pullback.use_deterministic_algorithms(True)
    assert not pullback.are_deterministic_algorithms_enabled()
    with pytest.warns(UserWarning, match="do not have a deterministic implementation"):
        pullback.use_deterministic_algorithms(True, warn_only=True)
    pullback.use_deterministic_algorithms(False)


def test_hooks_change_no_bit() -> None:
    assert fingerprint(hooks=True) == fingerprint()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_change_no_bit(reentrant: bool) -> None:
    def run(network: Any, x: Any) -> Any:
        return checkpoint(network, x.requires_grad_(), use_reentrant=reentrant)

    assert fingerprint(run) == fingerprint()


def test_compiled_functions_change_no_bit_where_algorithms_are_deterministic() -> None:
    def run(network: Any, x: Any) -> Any:
        compiled = pullback.compile(network)
        for _ in range(3):  # from the third call on Python is skipped
            network.zero_grad()
            y = compiled(x)
        assert y.grad_fn.name() == "CompiledFunctionBackward"
        return y

    pullback.use_deterministic_algorithms(True)
    try:
        assert fingerprint(lambda network, x: run(network.eval(), x)) == fingerprint(
            lambda network, x: network.eval()(x)
        )
    finally:
        pullback.use_deterministic_algorithms(False)


def test_watching_changes_no_bit() -> None:
    with recorded_run(), pullback.profiler.profile(profile_memory=True):
        watched = fingerprint()
    assert watched == fingerprint()


def test_names_none_and_signs_of_zero_count() -> None:
    x, y = pullback.ones(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    x.grad = pullback.tensor([0.0, 1.0])
    first = grad_fingerprint({"x": x, "y": y})
    assert first != grad_fingerprint({"y": x, "x": y})
    y.grad = pullback.zeros(2)
    assert grad_fingerprint({"x": x, "y": y}) != first
    x.grad, y.grad = pullback.tensor([-0.0, 1.0]), None
    assert grad_fingerprint({"x": x, "y": y}) != first


def program(change: str = "") -> None:
    x = pullback.ones(3, requires_grad=True)
    y = x.sin()
    if change == "operation":
        y = y.abs()
    data = pullback.full((3,), 3.0 if change == "inputs" else 2.0)
    z = (y * data).exp()
    if change == "gradient":
        z.register_hook(lambda grad: grad + 1.5)
    z.sum().backward()


def recorded(change: str = "") -> recorded_run:
    with recorded_run() as run:
        program(change)
    return run


def test_equal_runs_have_no_difference() -> None:
    assert first_difference(recorded(), recorded()) is None
    with recorded_run(against=recorded()) as again:
        program()
    assert len(again.entries) == 8


@pytest.mark.parametrize(
    ("change", "operation", "phase", "cause"),
    [
        ("operation", "abs", "forward", "operation"),
        ("inputs", "mul", "forward", "inputs"),
        ("gradient", "add", "forward", "operation"),
    ],
)
def test_the_first_difference_is_named(change: str, operation: str, phase: str, cause: str) -> None:
    report = first_difference(recorded(), recorded(change))
    assert report is not None
    row = report.rows[0]
    assert (row["operation"], row["phase"], row["cause"]) == (operation, phase, cause)
    assert row["line"].startswith(__file__)


def test_a_run_stops_where_it_differs() -> None:
    first = recorded()
    with (
        pytest.raises(RunDifference, match=r"mul \(forward\) at .*test_fingerprints.py") as caught,
        recorded_run(first),
    ):
        program("inputs")
    assert caught.value.row["index"] == 1


def test_an_operation_that_gives_other_bits_is_named() -> None:
    first, second = recorded(), recorded()
    index = [entry["operation"] for entry in second.entries].index("ExpBackward0")
    second.entries[index]["results"] = "other"
    report = first_difference(first, second)
    assert report is not None
    assert (report.rows[0]["operation"], report.rows[0]["cause"]) == ("ExpBackward0", "results")


def test_runs_of_two_processes_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    text = (
        "import pullback\n"
        "with pullback.recorded_run() as run:\n"
        "    pullback.manual_seed(0)\n"
        "    x = pullback.randn(5, requires_grad=True)\n"
        "    (x.sin() * 2).sum().backward()\n"
        f"run.save({str(path)!r})\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
    with recorded_run(against=str(path)):
        pullback.manual_seed(0)
        x = pullback.randn(5, requires_grad=True)
        (x.sin() * 2).sum().backward()
    path.write_text("{}")
    with pytest.raises(ValueError, match="does not hold a recorded run"):
        recorded_run.load(str(path))


def test_random_numbers_of_another_seed_are_named() -> None:
    runs = []
    for seed in (0, 1):
        pullback.manual_seed(seed)
        with recorded_run() as run:
            pullback.nn.functional.dropout(pullback.ones(4), 0.5)
        runs.append(run)
    difference = first_difference(*runs)
    assert difference is not None
    assert (difference.rows[0]["operation"], difference.rows[0]["cause"]) == ("bernoulli_", "random")


def test_a_run_that_ends_early_differs() -> None:
    with recorded_run() as whole:
        pullback.ones(3).sin().exp()
    match = r"differ first at operation 1, exp .*one of the runs ended before it"
    with pytest.raises(RunDifference, match=match), recorded_run(against=whole):
        pullback.ones(3).sin()


def test_an_error_in_a_run_is_not_hidden_by_its_end() -> None:
    with recorded_run() as whole:
        pullback.ones(3).sin()
    with pytest.raises(KeyError), recorded_run(against=whole):
        raise KeyError


def test_operations_of_a_recorded_pass_are_seen() -> None:
    x = pullback.ones(3, requires_grad=True)
    with recorded_run() as run:
        pullback.autograd.grad(x.sin().sum(), x, create_graph=True)
    assert [entry["operation"] for entry in run.entries] == [
        "sin", "sum", "expand", "SumBackward0", "cos", "mul", "SinBackward0",
    ]  # fmt: skip
