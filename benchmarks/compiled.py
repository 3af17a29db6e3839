"""Every workload compiled: pullback and PyTorch, eager and compiled, with the time to compile and the peak of memory.

`python -m benchmarks.compiled [words of names] [--rounds N] [--torch-compile]`. Each framework is a process of its own; the
ways take turns, so that a busy machine slows all of them. Times are the least of the rounds, in microseconds, and ratios
are to PyTorch eager. `first` is how long the first four calls take together: recording twice, and compiling. `peak` is how
much resident memory a call adds, in MiB.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS

WAYS = (("torch", "eager"), ("torch", "compiled"), ("pullback", "eager"), ("pullback", "compiled"))
_TURN = 0.1
"""Seconds of one turn."""


def _chosen(words: list[str]) -> list[Workload]:
    return [
        w for w in WORKLOADS.values()
        if w.measures == "time" and (any(word in w.name for word in words) if words else w.quick)
    ]  # fmt: skip


def _reset_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def _release_free_memory() -> None:
    """Give memory that nobody uses back to the system, so that a call has to ask for what it needs."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _memory(name: str) -> float:
    """A line of the process's status, in MiB."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith(name)), 0.0)


class _Server:
    """Runs workloads of one framework on request; lives in a process of its own."""

    def __init__(self, framework: str) -> None:
        self.torch: Any = importlib.import_module(framework)
        self.runs: dict[tuple[str, str], Any] = {}

    def prepare(self, name: str, way: str) -> dict[str, float]:
        """Make a workload ready; how long its first calls take, and the peak of memory of one more."""
        self.torch.manual_seed(0)
        run: Any = WORKLOADS[name].make(self.torch)
        if way == "compiled":
            run = self.torch.compile(run)
        begin = time.perf_counter()
        for _ in range(4):
            run()
        first = time.perf_counter() - begin
        if way == "compiled" and self.torch.__name__ == "pullback":
            time.sleep(1)  # what is compiled beside
            run()
        _release_free_memory()
        _reset_peak()
        before = _memory("VmRSS")
        run()
        self.runs[name, way] = run
        return {"first": first, "peak": max(_memory("VmHWM") - before, 0.0)}

    def turn(self, name: str, way: str) -> float:
        """The least time of a call in one turn."""
        run, best, end = self.runs[name, way], float("inf"), time.perf_counter() + _TURN
        while True:
            begin = time.perf_counter()
            run()
            now = time.perf_counter()
            best = min(best, now - begin)
            if now > end:
                return best


def serve(framework: str) -> None:
    """Answer requests, one line of JSON each."""
    warnings.simplefilter("ignore")
    server = _Server(framework)
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request, name, way = json.loads(line)
        try:
            answer: Any = getattr(server, request)(name, way)
        except Exception as error:  # a way that does not work is a row without it
            answer = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(answer), file=answers, flush=True)


class _Client:
    def __init__(self, framework: str) -> None:
        command = [sys.executable, "-m", "benchmarks.compiled", "--serve", framework]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, request: str, name: str, way: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([request, name, way]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline() or '"the process ended"')

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure(name: str, ways: list[tuple[str, str]], rounds: int) -> dict[tuple[str, str], dict[str, float]]:
    """The times of one workload, each way; ways that fail are left out."""
    clients = {framework: _Client(framework) for framework in {framework for framework, _ in ways}}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for way in ways:
        ready = clients[way[0]].ask("prepare", name, way[1])
        if isinstance(ready, dict):
            found[way] = ready | {"time": float("inf")}
        else:
            print(f"  {way[0]} {way[1]}: {ready}", file=sys.stderr)
    for _ in range(rounds):
        for way, row in found.items():
            row["time"] = min(row["time"], clients[way[0]].ask("turn", name, way[1]))
    for client in clients.values():
        client.close()
    return found


def main() -> None:
    """Print a row per workload."""
    parser = argparse.ArgumentParser(description="time workloads, eager and compiled")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--torch-compile", action="store_true", help="PyTorch's compiler too, which takes its time")
    parser.add_argument("--serve")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    ways = [way for way in WAYS if given.torch_compile or way != ("torch", "compiled")]
    print(
        "| workload | torch eager us |"
        + "".join(f" {f} {w} |" for f, w in ways[1:])
        + " first s | peak MiB eager / compiled |"
    )
    print("|---|" + "---|" * (len(ways) + 2))
    for workload in _chosen(given.words):
        found = measure(workload.name, ways, given.rounds)
        base = found.get(("torch", "eager"), {}).get("time", float("nan"))
        cells = [f"{found[way]['time'] / base:.3f}" if way in found else "-" for way in ways[1:]]
        compiled, eager = (found.get(("pullback", way), {}) for way in ("compiled", "eager"))
        peaks = f"{eager.get('peak', 0):.1f} / {compiled.get('peak', 0):.1f}"
        row = [workload.name, f"{base * 1e6:.0f}", *cells, f"{compiled.get('first', 0):.2f}", peaks]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
