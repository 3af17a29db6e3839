"""Time one workload on both frameworks: each in a process of its own, gradients compared first, turns interleaved."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from benchmarks.workload import Workload

FRAMEWORKS = ("torch", "pullback")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class NotComparableError(Exception):
    """A framework failed, or the two do not compute the same, so that their times say nothing."""


@dataclass(frozen=True)
class Interpreters:
    """The Python that each framework is installed for: an installed, compiled pullback may have one of its own."""

    pullback: str = sys.executable

    def command(self, framework: str) -> list[str]:
        return [self.pullback if framework == "pullback" else sys.executable]

    def environment(self, framework: str) -> dict[str, str]:
        """The environment, without the way to a source tree where pullback is to be found installed."""
        is_installed = framework == "pullback" and self.pullback != sys.executable
        return {name: value for name, value in os.environ.items() if not (is_installed and name == "PYTHONPATH")}


class Worker:
    """A process that holds one framework and one workload, and waits without using the processor between turns."""

    def __init__(
        self, framework: str, workload: str, threads: int, interpreters: Interpreters, under: Sequence[str] = ()
    ) -> None:
        self._name = f"{framework}: {workload}"
        command = [*under, *interpreters.command(framework), "-m", "benchmarks.worker", framework, workload]
        environment = interpreters.environment(framework) | dict.fromkeys(THREAD_VARIABLES, str(threads))
        self._process = subprocess.Popen(
            [*command, "--threads", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
            text=True,
        )  # fmt: skip
        self.pid = self._process.pid

    def ask(self, request: str) -> Any:
        """Send one command and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended: its empty answer says so
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise NotComparableError(f"{self._name} ended with status {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process by ending its input."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def largest_difference(first: Path, second: Path) -> float:
    """The largest difference of two lists of gradients, each relative to the norm of the first."""
    with numpy.load(first) as expected, numpy.load(second) as actual:
        if expected.files != actual.files:
            return float("inf")
        return max(_relative_difference(expected[name], actual[name]) for name in expected.files)


def _relative_difference(expected: Any, actual: Any) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    difference = numpy.linalg.norm(numpy.ravel(expected - actual))
    return float(difference / (numpy.linalg.norm(numpy.ravel(expected)) + 1e-30))


def compare(workload: Workload, threads: int, turns: int, seconds: float, interpreters: Interpreters) -> dict[str, Any]:
    """Measure one workload; raises NotComparableError where the frameworks disagree."""
    workers = {framework: Worker(framework, workload.name, threads, interpreters) for framework in FRAMEWORKS}
    try:
        difference = _check_gradients(workers)
        if not difference <= workload.tolerance:
            raise NotComparableError(f"{workload.name}: the gradients differ by {difference:.1e}, relative")
        if workload.measures == "memory":
            measured = {framework: worker.ask("memory") for framework, worker in workers.items()}
            spread = [measured["pullback"] / measured["torch"]] * 2
        else:
            measured, spread = _interleave(workers, turns, seconds)
    finally:
        for worker in workers.values():
            worker.close()
    return {
        "workload": workload.name,
        "measures": workload.measures,
        "threads": threads,
        **measured,
        "ratio": measured["pullback"] / measured["torch"],
        "spread": spread,
        "goal": workload.goal,
        "gradient_difference": difference,
    }


def _check_gradients(workers: dict[str, Worker]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        files = {framework: Path(folder, f"{framework}.npz") for framework in workers}
        for framework, worker in workers.items():
            worker.ask(f"gradients {files[framework]}")
        return largest_difference(files["torch"], files["pullback"])


def _interleave(workers: dict[str, Worker], turns: int, seconds: float) -> tuple[dict[str, float], list[float]]:
    """The least time of each framework, and the quartiles of the ratios of neighbouring turns."""
    for worker in workers.values():
        worker.ask("turn 0")
    minima: dict[str, list[float]] = {framework: [] for framework in workers}
    for _ in range(turns):
        for framework, worker in workers.items():
            minima[framework].append(min(worker.ask(f"turn {seconds}")))
    ratios = [own / other for own, other in zip(minima["pullback"], minima["torch"], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4) if turns > 1 else (ratios[0],) * 3
    return {framework: min(times) for framework, times in minima.items()}, [low, high]
