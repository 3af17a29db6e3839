"""What goes wrong around a compiled function: it gives eager's error or eager's result, and loses nothing."""

from __future__ import annotations

import _thread
import errno
import importlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import kernels, nn
from pullback.compiling import backend, compiled_function, entries, library
from pullback.compiling.kernel_names import current_recorder
from pullback.recording import array_formulas
from tests.compiling.comparison import CALLS, assert_close, skipped, weights
from tests.compiling.examples import counting_runs

F = nn.functional
TABLE = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder of compiled loops that holds none."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "loops"))
    library.library.forget()
    yield tmp_path
    library.library.forget()


def assert_goes_on(function: Any, compiled: Any, runs: int) -> None:
    """The compiled function gives eager's values and gradients, and skips Python at last."""
    for call in range(CALLS):
        x, y = weights(2, 2, seed=call), weights(2, 2, seed=call)
        expected, actual = function(x), compiled(y)
        assert_close(actual, expected)
        expected.sum().backward()
        actual.sum().backward()
        assert_close(y.grad, x.grad)
    assert skipped(compiled) >= runs


# Bad arguments.


@pytest.mark.parametrize("calls", [1, 2, CALLS])
@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: pullback.ones(3, 3), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
        (lambda: pullback.ones(2, 2, dtype=pullback.float64), RuntimeError, "same dtype"),
        (lambda: None, TypeError, "NoneType"),
    ],
)
def test_wrong_argument_of_a_later_call_raises_what_eager_raises(
    calls: int, wrong: Any, error: Any, words: str
) -> None:
    layer = nn.Linear(2, 2)
    compiled = pullback.compile(layer.forward)
    for _ in range(calls):
        compiled(pullback.ones(2, 2))
    with pytest.raises(error, match=words) as expected:
        layer.forward(wrong())
    with pytest.raises(error, match=words) as actual:
        compiled(wrong())
    assert str(actual.value) == str(expected.value)
    assert_goes_on(layer.forward, compiled, CALLS - 2)


# Exceptions in the middle.


def _writes_first(buffer: Any, index: Any) -> Any:
    buffer.add_(1)
    return F.embedding(index, TABLE)


def _writes_last(buffer: Any, index: Any) -> Any:
    rows = F.embedding(index, TABLE)
    buffer.add_(1)
    return rows


def _reads_what_it_wrote(buffer: Any, index: Any) -> Any:
    buffer.add_(1)
    return F.embedding(index, buffer.expand(2, 2) * 2)


def _writes_before_another_call(buffer: Any, index: Any) -> Any:
    rows = F.embedding(index.clamp(max=1), TABLE)
    buffer.mul_(rows.sum())
    return F.embedding(index, buffer.expand(2, 2).contiguous().cumsum(0))


@pytest.mark.parametrize("function", [_writes_first, _writes_last, _reads_what_it_wrote, _writes_before_another_call])
def test_writes_before_an_error_are_made_once(function: Any) -> None:
    compiled = pullback.compile(function)
    expected, actual = pullback.ones(2), pullback.ones(2)
    for _ in range(CALLS):
        assert_close(compiled(actual, pullback.tensor([0, 1])), function(expected, pullback.tensor([0, 1])))
    assert skipped(compiled) == CALLS - 2
    for run, buffer in ((function, expected), (compiled, actual)):
        with pytest.raises(IndexError, match="index out of range"):
            run(buffer, pullback.tensor([0, 7]))
    assert_close(actual, expected)
    assert actual._version == expected._version


def test_statistics_move_once_where_the_loss_refuses_a_target() -> None:
    layers = [nn.BatchNorm1d(3), nn.BatchNorm1d(3)]
    runs = [lambda x, y, layer=layer: F.cross_entropy(layer(x) * 2, y) for layer in layers]
    runs[1] = pullback.compile(runs[1])
    for run in runs:
        for target in (0, 1, 2, 1):
            run(weights(2, 3, seed=target), pullback.tensor([0, target]))
        with pytest.raises(IndexError, match="Target 7 is out of bounds"):
            run(weights(2, 3), pullback.tensor([0, 7]))
    assert_close(layers[1].running_mean, layers[0].running_mean)
    assert layers[1].num_batches_tracked == layers[0].num_batches_tracked


def test_random_stream_goes_on_as_in_eager_after_an_error() -> None:
    def function(x: Any, index: Any) -> Any:
        return F.dropout(x, 0.5), F.embedding(index, TABLE)

    compiled = pullback.compile(function)
    drawn = []
    for run in (function, compiled):
        pullback.manual_seed(0)
        for _ in range(CALLS):
            run(pullback.ones(4), pullback.tensor([0]))
        with pytest.raises(IndexError):
            run(pullback.ones(4), pullback.tensor([2]))
        drawn.append(pullback.rand(3))
    assert pullback.equal(*drawn)


def test_fault_of_the_compiler_itself_leaves_the_result_of_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(compiled_function, "Entry", fail)
    compiled = pullback.compile(lambda x: x.exp())
    assert_goes_on(lambda x: x.exp(), compiled, 0)
    told = str(pullback.compiler.explain(compiled)(pullback.ones(2)))
    assert "ZeroDivisionError: on purpose" in told


def test_program_that_raises_where_its_function_does_not_is_given_up() -> None:
    compiled = pullback.compile(lambda x: x.exp() + 1)
    for _ in range(CALLS):
        compiled(pullback.ones(2))

    def fail(inputs: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    (entry,) = [entry for kind in compiled.kinds.values() for entry in kind.entries]
    entry.run_forward = fail
    for _ in range(entries.MOST_FAILURES + 2):
        assert compiled(pullback.zeros(2)).tolist() == [2, 2]
    assert entry.failures == entries.MOST_FAILURES
    assert "its program raised ZeroDivisionError: on purpose" in str(
        pullback.compiler.explain(compiled)(pullback.ones(2))
    )


# Ctrl-C.


def test_interrupt_while_a_call_is_recorded_leaves_everything_as_it_was() -> None:
    layer, interrupts = nn.Linear(2, 2), [True]

    def function(x: Any) -> Any:
        y = layer(x)
        if interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        return y.exp()

    compiled = pullback.compile(function)
    with pytest.raises(KeyboardInterrupt):
        compiled(pullback.ones(2, 2))
    assert current_recorder() is None
    assert type(layer.weight._array).__name__ == "ndarray"
    assert_goes_on(function, compiled, 1)


def test_interrupt_while_a_call_waits_for_the_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.Linear(2, 2)
    compiled = pullback.compile(layer.forward)
    compiled(pullback.ones(2, 2))
    addresses = library.library.addresses

    def interrupt(texts: list[str]) -> list[int]:
        _thread.interrupt_main()
        time.sleep(0.2)
        return addresses(texts)

    with monkeypatch.context() as patch:
        patch.setattr(library.library, "addresses", interrupt)
        patch.setattr(backend, "PATIENCE", 60.0)
        with pytest.raises(KeyboardInterrupt):
            compiled(pullback.ones(2, 2))
    assert_goes_on(layer, compiled, CALLS - 2)


_CHILD = """
from pullback.compiling.library import Library
import threading, time
found = []
thread = threading.Thread(target=lambda: found.extend(Library().addresses(["void NAME(void) {}"])))
try:
    thread.start()
    time.sleep(1000)
except KeyboardInterrupt:
    pass
thread.join()
print(len(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX's")
def test_interrupt_from_the_terminal_does_not_reach_the_compiler(folder: Path) -> None:
    compiler, started = folder / "compiler", folder / "started"
    found = library.find_compiler()
    compiler.write_text(f'#!/bin/sh\ntouch {started}\nsleep 0.3\nexec {shlex.join(found or ())} "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "CC": str(compiler), "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    while not started.exists() and child.poll() is None:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does it
    assert child.communicate()[0].strip() == "1"


# The folder, and the compiler.


def _run_compiled(function: Any) -> Any:
    """Compile and compare a function; gives what runs its forward, when the compiler is done."""
    compiled = pullback.compile(function)
    assert_goes_on(function, compiled, CALLS - 2)
    (kind,) = compiled.kinds.values()
    kind.entries[0].run_forward.wait()
    return kind.entries[0].run_forward


@pytest.mark.parametrize("fault", ["read-only", "full", "removed", "damaged"])
def test_fault_of_the_folder_costs_nothing_but_time(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return (x.exp() * x).sum(0)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.EROFS if fault == "read-only" else errno.ENOSPC, "on purpose")

    write = library._write_whole
    if fault == "read-only":  # root may write to any folder
        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    elif fault == "full":
        monkeypatch.setattr(
            library, "_write_whole", lambda path, content: (refuse if folder in path.parents else write)(path, content)
        )
    elif fault == "removed":
        library.library.folder().rmdir()
    else:
        _run_compiled(function)
        for path in (folder / "loops").glob("*.so"):
            path.unlink()  # this process has it in memory
            path.write_bytes(b"damaged")
        library.library.forget()
    assert _run_compiled(function).is_compiled


_NO_LIBRARY = 'while [ "$1" != -o ]; do shift; done; echo damaged >"$2"'


@pytest.mark.parametrize("text", ["exit 1", "kill -9 $$", "exit 0", _NO_LIBRARY])
def test_compiler_that_fails_leaves_results_of_eager(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = folder / "compiler"
    compiler.write_text(f"#!/bin/sh\n{text}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))

    def function(x: Any) -> Any:
        return (x.sin() * x).sum(0)

    assert not _run_compiled(function).is_compiled


def test_runs_of_functions_that_are_freed_are_counted() -> None:
    with counting_runs() as count:
        for _ in range(2):
            compiled = pullback.compile(lambda x: x.exp())
            for _ in range(CALLS):
                compiled(pullback.ones(3))
            del compiled
    assert count["runs"] == 2 * (CALLS - 2)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.unbind(0)[0], "Dimension specified as 0 but tensor has no dimensions"),
        (lambda x: -(x > 0), "on a bool tensor is not supported"),
    ],
)
def test_what_a_check_says_after_a_kernel_failed_is_said_while_recording(function: Any, words: str) -> None:
    with pytest.raises((IndexError, RuntimeError), match=words):
        pullback.compile(function)(pullback.tensor(1.0))


@pytest.mark.parametrize("reduce", [lambda x: x.mean(0), lambda x: x.mean(0, keepdim=True)])
def test_gradient_spread_over_one_row_is_added_to_another(reduce: Any) -> None:
    compiled = pullback.compile(lambda x: (reduce(x), x))
    for _ in range(CALLS):
        x = pullback.ones(1, 3, requires_grad=True)
        mean, same = compiled(x * 1)
        (mean.sum() + same.sum()).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_error_of_a_kernel_that_the_function_catches_is_not_taken_for_granted() -> None:
    def program(x: Any) -> Any:
        try:
            y = pullback.linalg.cholesky(x)
        except RuntimeError:
            y = x * 10
        return y * 2

    compiled = pullback.compile(program)
    for scale in (-1, -1, -1, 4, 4, 4, -1, 4):
        x = pullback.eye(2) * scale
        assert compiled(x).tolist() == program(x).tolist()


def test_index_error_that_the_function_catches_is_not_taken_for_granted() -> None:
    weight = pullback.ones(3, 2)

    def program(index: Any) -> Any:
        try:
            return F.embedding(index, weight)
        except IndexError:
            return weight.sum()

    compiled = pullback.compile(program)
    for index in (5, 5, 5, 1, 1, 1, 7, 2):
        given = pullback.tensor([index])
        assert compiled(given).tolist() == program(given).tolist()


def test_arguments_that_are_checked_by_value_break_nothing() -> None:
    def program(x: Any) -> Any:
        made = pullback.distributions.Normal(x, x.exp())
        return made.log_prob(x + 1).sum() + F.gaussian_nll_loss(x, x, x.abs()) + F.one_hot(x.relu().long(), 4).sum()

    compiled = pullback.compile(program, fullgraph=True)
    for call in range(5):
        x = pullback.full((2,), 0.5 * call)
        assert compiled(x).item() == pytest.approx(program(x).item(), rel=1e-5)
    assert skipped(compiled) == 3
    for wrong in (pullback.tensor([1.0, float("nan")]), pullback.tensor([1.0, 9.0])):
        with pytest.raises((ValueError, RuntimeError)) as expected:
            program(wrong)
        with pytest.raises(type(expected.value)) as actual:
            compiled(wrong)
        assert str(actual.value) == str(expected.value)


def test_kernel_that_is_first_asked_for_while_a_call_is_recorded_is_itself_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (kernels, array_formulas):
        if "cumsum" in vars(module):
            monkeypatch.delitem(vars(module), "cumsum")
    asked = []

    def function(x: Any) -> Any:
        asked.append(array_formulas.cumsum)
        return x + 1

    pullback.compile(function)(pullback.ones(3))
    kernel = importlib.import_module("pullback.kernels.scans").cumsum
    assert kernels.cumsum is kernel
    assert array_formulas.cumsum is kernel
    assert asked[0] is not kernel
