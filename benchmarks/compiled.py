"""Every workload compiled: pullback and PyTorch, eager and compiled, with the time to compile and the peak of memory.

`python -m benchmarks.compiled [words of names] [--rounds N] [--threads N] [--torch-compile] [--jax PYTHON] [--write]`, where
PYTHON is an interpreter that has JAX. Each framework is a process of its own; the ways take turns, so that a busy machine
slows all of them. Ratios are of the least times, to PyTorch eager; the spread is the middle half of the ratios of
neighbouring turns. On one thread all times are processor time, which other processes do not lengthen. `first` is how long it
takes until the program is compiled, in seconds: the recorded calls, the plan and the compiler, nothing of it found on disk.
`peak` is how much resident memory a call adds, in MiB; workloads that measure memory have a table of it alone. `--write`
puts the tables into docs/performance.md: what was not measured now stands there as it did.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import jax_workloads
from benchmarks.machine import ForeignLoad, hardware, sentence
from benchmarks.report import load_sentence
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS
from pullback.backend.configuration import compiled_modules

WAYS = (
    ("torch", "eager"), ("torch", "compiled"), ("jax", "compiled"), ("pullback", "eager"), ("pullback", "compiled"),
)  # fmt: skip
_TURN, _BLOCK = 0.1, 0.001
"""Seconds of one turn, and of the calls that are timed together, at least."""


def _chosen(words: list[str]) -> list[Workload]:
    return [w for w in WORKLOADS.values() if not words or any(word in w.name for word in words)]


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

    def __init__(self, framework: str, threads: int) -> None:
        self.torch: Any = importlib.import_module(framework)
        if framework != "jax":
            self.torch.set_num_threads(threads)
        self._clock = time.process_time if threads == 1 else time.perf_counter
        self._long_clock = _processor_time if threads == 1 else time.perf_counter
        self.runs: dict[tuple[str, str], Any] = {}

    def prepare(self, name: str, way: str) -> dict[str, Any]:
        """Make a workload ready; how long its first calls take, the peak of memory of one more, and what the first gave."""
        run = self._made(name, way)
        begin = self._long_clock()
        results = run()
        for _ in range(3):
            run()
        while any(thread.name == "pullback-compile" for thread in threading.enumerate()):
            time.sleep(0.01)
        first = self._long_clock() - begin
        for _ in range(10 if first < 10 else 1):  # compiled programs choose their way
            run()
        _release_free_memory()
        _reset_peak()
        before = _memory("VmRSS")
        run()
        self.runs[name, way] = run
        return {"first": first, "peak": max(_memory("VmHWM") - before, 0.0), "sizes": self._sizes(results)}

    def _sizes(self, results: Any) -> list[float]:
        """How large the gradients are that a call gave, each: what the frameworks must agree on."""
        if self.torch.__name__ == "jax":
            return sorted([float(abs(array).sum()) for array in self.torch.tree.leaves(results)])
        return sorted([float(result.abs().sum()) for result in results])

    def _made(self, name: str, way: str) -> Any:
        if self.torch.__name__ == "jax":
            return jax_workloads.make(name)
        self.torch.manual_seed(0)
        run: Any = WORKLOADS[name].make(self.torch)
        return self.torch.compile(run) if way == "compiled" else run

    def turn(self, name: str, way: str) -> float:
        """The least time of a call in one turn."""
        run, best, end = self.runs[name, way], float("inf"), time.perf_counter() + _TURN
        calls = 1
        while True:
            begin = self._clock()
            for _ in range(calls):
                run()
            took = self._clock() - begin
            if took < _BLOCK:  # clocks of processor time jump by some microseconds
                calls *= 2
                continue
            best = min(best, took / calls)
            if time.perf_counter() > end:
                return best


def _processor_time() -> float:
    """Of this process and of those that it started, in seconds."""
    return sum(os.times()[:4])


def serve(framework: str, threads: int) -> None:
    """Answer requests, one line of JSON each."""
    warnings.simplefilter("ignore")
    server = _Server(framework, threads)
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
    def __init__(self, framework: str, threads: int, cache: str, python: str) -> None:
        command = [python, "-m", "benchmarks.compiled", "--serve", framework, "--threads", str(threads)]
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        folders = {"PULLBACK_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        if threads == 1:
            limits["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **limits, **folders},
        )  # fmt: skip

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


def measure(
    name: str, ways: list[tuple[str, str]], rounds: int, threads: int, jax: str = ""
) -> dict[tuple[str, str], Any]:
    """The times of one workload, each way; ways that fail are left out. `jax` is the interpreter that has it."""
    found: dict[tuple[str, str], Any] = {}
    with tempfile.TemporaryDirectory(prefix="pullback-benchmark-") as cache:
        clients = {
            framework: _Client(framework, threads, cache, jax if framework == "jax" else sys.executable)
            for framework in {framework for framework, _ in ways}
        }
        for way in ways:
            ready = clients[way[0]].ask("prepare", name, way[1])
            if isinstance(ready, dict) and not _agree(found.get(ways[0], ready)["sizes"], ready["sizes"]):
                print(f"  {way[0]} {way[1]}: other gradients than {ways[0][0]} {ways[0][1]}", file=sys.stderr)
            elif isinstance(ready, dict):
                found[way] = ready | {"times": []}
            else:
                print(f"  {way[0]} {way[1]}: {ready}", file=sys.stderr)
        for _ in range(rounds):
            for way, row in found.items():
                row["times"].append(clients[way[0]].ask("turn", name, way[1]))
        for client in clients.values():
            client.close()
    return found


def _agree(expected: list[float], actual: list[float]) -> bool:
    """Whether gradients are of equal size. None are given where a framework begins with other parameters."""
    if not expected or not actual:
        return True
    pairs = zip(expected, actual, strict=False)
    return len(expected) == len(actual) and all(math.isclose(e, a, rel_tol=1e-2, abs_tol=1e-4) for e, a in pairs)


def _cell(row: dict[str, Any], base: list[float]) -> str:
    """A ratio to PyTorch eager with its spread."""
    ratios = sorted(mine / its for mine, its in zip(row["times"], base, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return f"{min(row['times']) / min(base):.3g} ({low:.2g} to {high:.2g})"


Row = dict[str, str]
"""The cells of a row of a table, by column."""
_NAME, _BASE, _PEAK, _MEMORY = "workload", "torch eager us", "peak MiB eager / compiled", "peak of memory, MiB"
_TIMES = (
    _NAME,
    _BASE,
    *[f"{f} {w}" for f, w in WAYS[1:]],
    *[f"first s, {f}" for f, w in WAYS if w == "compiled"],
    _PEAK,
)
_MEMORIES = (_MEMORY, *[f"{f} {w}" for f, w in WAYS])


def _row(name: str, found: dict[tuple[str, str], Any]) -> Row:
    base = found["torch", "eager"]["times"]
    compiled, eager = (found.get(("pullback", way), {}) for way in ("compiled", "eager"))
    made = {
        _NAME: name,
        _BASE: f"{min(base) * 1e6:.0f}",
        _PEAK: f"{eager.get('peak', 0):.1f} / {compiled.get('peak', 0):.1f}",
    }
    for (framework, way), row in found.items():
        if (framework, way) != WAYS[0]:
            made[f"{framework} {way}"] = _cell(row, base)
        if way == "compiled":
            made[f"first s, {framework}"] = f"{row['first']:.1f}"
    return made


def _memory_row(name: str, found: dict[tuple[str, str], Any]) -> Row:
    return {_MEMORY: name} | {f"{framework} {way}": f"{row['peak']:.0f}" for (framework, way), row in found.items()}


def _line(row: Row, columns: Sequence[str]) -> str:
    return "| " + " | ".join([row.get(column, "-") for column in columns]) + " |"


def _table(rows: list[Row], columns: Sequence[str]) -> list[str]:
    return [
        _line({c: c for c in columns}, columns),
        "|---|" + "--:|" * (len(columns) - 1),
        *[_line(r, columns) for r in rows],
    ]


def _rows_of_page(columns: Sequence[str]) -> dict[str, Row]:
    """The rows of the table that the page has, by the names of workloads."""
    page = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    lines = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in page.splitlines() if line.startswith("| ")
    ]
    head: list[str] = []
    found: dict[str, Row] = {}
    for cells in lines:
        if cells[0] in (_NAME, _MEMORY):
            head = cells
        elif head and head[0] == columns[0]:
            found[cells[0]] = dict(zip(head, cells, strict=True))
    return found


def _with_former(measured: list[Row], columns: Sequence[str]) -> list[Row]:
    """Rows in the order of workloads; what this run did not measure is the page's."""
    rows = _rows_of_page(columns)
    for row in measured:
        rows[row[columns[0]]] = rows.get(row[columns[0]], {}) | row
    return [rows[name] for name in WORKLOADS if name in rows]


def _means(rows: list[Row]) -> str:
    """The geometric means of the ratios, over the workloads that a way could run, and who is ahead."""

    def ratios(way: str) -> dict[str, float]:
        return {row[_NAME]: float(row[way].split()[0]) for row in rows if row.get(way, "-") != "-"}

    told = []
    for way in _TIMES[2 : 1 + len(WAYS)]:
        found = ratios(way)
        if found:
            mean = math.exp(sum(map(math.log, found.values())) / len(found))
            told.append(f"{way} {mean:.3f} (of {len(found)})")
    mine, eager, jax = ratios("pullback compiled"), ratios("pullback eager"), ratios("jax compiled")
    slower = sum(mine[name] > eager[name] for name in mine.keys() & eager.keys())
    behind = sum(mine[name] > jax[name] for name in mine.keys() & jax.keys())
    ends = f"Slower than pullback eager: {slower} of {len(mine)}. Slower than jax.jit: {behind} of {len(jax)}."
    return f"Geometric means: {', '.join(told)}. {ends}"


_PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
_BEGIN, _END = "<!-- compiled -->", "<!-- end of compiled -->"


def write(lines: list[str]) -> None:
    """Put the table into the page, between its two marks."""
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    _PAGE.write_text("\n".join([before + _BEGIN, *lines, _END + after]), encoding="utf-8")


def main() -> None:
    """Print a row per workload."""
    parser = argparse.ArgumentParser(description="time workloads, eager and compiled")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch-compile", action="store_true", help="PyTorch's compiler too, which takes its time")
    parser.add_argument("--jax", default="", help="an interpreter that has JAX, whose jit is timed too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    parser.add_argument("--serve")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.threads)
        return
    wanted = {("torch", "compiled"): given.torch_compile, ("jax", "compiled"): bool(given.jax)}
    ways = [way for way in WAYS if wanted.get(way, True)]
    print(*_table([], _TIMES), sep="\n", flush=True)
    times: list[Row] = []
    memory: list[Row] = []
    load = ForeignLoad()
    for workload in _chosen(given.words):
        is_timed = workload.measures == "time"
        found = measure(workload.name, ways, given.rounds if is_timed else 0, given.threads, given.jax)
        if is_timed:
            times.append(_row(workload.name, found))
            print(_line(times[-1], _TIMES), flush=True)
        else:
            memory.append(_memory_row(workload.name, found))
            print(_line(memory[-1], _MEMORIES), flush=True)
    print(_means(times))
    if given.write:
        threads = "one thread" if given.threads == 1 else f"{given.threads} threads"
        modules = f"{len(compiled_modules())} of pullback's modules compiled"
        said = f"{sentence(hardware())} {modules}, on {threads}. {load_sentence(load.report())}"
        whole = len(times) + len(memory) == len(WORKLOADS) and len(ways) == len(WAYS)
        said += (
            "" if whole else " What this run did not measure stands as an earlier one did, on the same kind of machine."
        )
        all_times, all_memory = _with_former(times, _TIMES), _with_former(memory, _MEMORIES)
        tables = [*_table(all_times, _TIMES), *(["", *_table(all_memory, _MEMORIES)] if all_memory else [])]
        write([said, "", _means(all_times), "", *tables])


if __name__ == "__main__":
    main()
