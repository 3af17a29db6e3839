"""Several ranks: messages beside mpi4py alone, a GPT's step beside PyTorch's over gloo, and a model of both.

    python -m benchmarks.distributed --ranks 1 2 4 8 --json docs/distributed_times.json --write docs/distributed_model.md
    python -m benchmarks.distributed --from docs/distributed_times.json --write docs/distributed_model.md

The model of a message of b bytes among n ranks is that of a ring, which takes 2 (n - 1) rounds:

    overhead + 2 (n - 1) latency + 2 (n - 1) / n * b / bandwidth

`overhead` (of a call), `latency` (of a round) and `bandwidth` are fitted on half of the measurements and checked on the
other half.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
PROGRAM = Path(__file__).parent / "distributed_rank.py"
NETWORKS = {
    "10 Gb/s Ethernet": (30e-6, 1.1e9),
    "25 Gb/s Ethernet (cloud)": (25e-6, 2.8e9),
    "100 Gb/s InfiniBand EDR": (2e-6, 11e9),
    "200 Gb/s InfiniBand HDR": (1.5e-6, 22e9),
}
"""Latency in seconds and bandwidth in bytes per second that these networks are known to reach between two machines."""

Times = dict[str, Any]


def run_ranks(python: str, ranks: int, *arguments: str, **variables: str) -> Times:
    """What rank 0 of the program finds; `python` is an interpreter that has pullback, "" this one, or "torch"."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    if python != "torch":
        start = [python or sys.executable, "-m", "pullback", "launch", "-n", str(ranks)]
    paths = os.pathsep.join([str(ROOT)] if python else [str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        [*start, str(PROGRAM), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("FOUND "):
            found: Times = json.loads(line.removeprefix("FOUND "))
            return found
    raise RuntimeError(f"{ranks} ranks failed:\n{done.stderr[-3000:]}")


def measure(given: argparse.Namespace) -> Times:
    """All times, by number of ranks: each the best of some rounds, in which all sides take turns."""
    described = _describe(given)
    found: Times = {
        "messages_measured": f"{described} Of all messages the fastest tenth counts.", "measured": described,
        "messages": {}, "training": {}, "torch": {}, "compressed": {},
    }  # fmt: skip
    for number in range(given.rounds):
        for ranks in given.ranks:
            if ranks > 1 and given.only != "training":
                _keep_fastest_messages(found["messages"], str(ranks), run_ranks(given.python, ranks, "messages"))
            if given.only != "messages":
                for key, python in (("training", given.python), ("torch", "torch"))[: 1 if given.no_torch else 2]:
                    _keep_fastest(found[key], str(ranks), run_ranks(python, ranks, "training", str(given.steps)))
            print(f"{ranks} ranks measured, round {number + 1}", file=sys.stderr)
        if given.only != "messages" and 2 in given.ranks:
            for name in ("float16", "bfloat16"):
                once = run_ranks(given.python, 2, "training", str(given.steps), BENCHMARK_HOOK=name)
                _keep_fastest(found["compressed"], name, once)
        if given.json:  # a machine may be taken away
            Path(given.json).write_text(json.dumps(found, indent=1) + "\n")
    return found


def _describe(given: argparse.Namespace) -> str:
    """When and with what: the date, the processor, the versions, and how busy the machine was."""
    model = next((line for line in _lines_of("/proc/cpuinfo") if line.startswith("model name")), ": unknown processor")
    versions = " and ".join(f"{name} {metadata.version(name)}" for name in ("mpi4py", *["torch"][: not given.no_torch]))
    form = (
        "an installed, compiled pullback" if given.python else "pullback with compiled kernels and uncompiled modules"
    )
    return (
        f"Measured on {date.today().isoformat()} on {os.cpu_count()} cores of {model.partition(': ')[2]}, with {form}, "
        f"{versions}, Python {platform.python_version()}, the best "
        f"of {given.rounds} round(s) of {given.steps} steps; other programs kept "
        f"{os.getloadavg()[2]:.1f} processes busy in the quarter of an hour before."
    )


def _lines_of(file: str) -> list[str]:
    return Path(file).read_text().splitlines() if Path(file).exists() else []


def _keep_fastest(kept: Times, name: str, found: Times) -> None:
    """Keep the fastest of each: other processes only ever make one slower."""
    before = kept.setdefault(name, found)
    for part in ("step", "computation", "averaging", "step_processor", "computation_processor"):
        before[part] = min(before[part], found[part])


def _keep_fastest_messages(kept: Times, name: str, found: Times) -> None:
    before = kept.setdefault(name, found)
    for side, times in found.items():
        for size, seconds in times.items():
            before[side][size] = min(before[side][size], seconds)


def ring(ranks: int, size: float, overhead: float, latency: float, bandwidth: float) -> float:
    """Seconds of a message by the model.

    >>> ring(2, 1e6, 0.0, 1e-6, 1e9)
    0.001002
    """
    return overhead + 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / bandwidth


def fit(points: list[tuple[int, int, float]]) -> tuple[float, float, float]:
    """Overhead, latency and bandwidth with the smallest relative errors.

    >>> known = [(n, size, ring(n, size, 1e-5, 1e-6, 1e9)) for n in (2, 4, 8) for size in (10**3, 10**5, 10**7)]
    >>> [float(f"{value:.3g}") for value in fit(known)]
    [1e-05, 1e-06, 1000000000.0]
    """
    rows = [[1 / t, 2 * (n - 1) / t, 2 * (n - 1) / n * size / t] for n, size, t in points]
    overhead, latency, per_byte = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0]
    return float(max(overhead, 0.0)), float(max(latency, 0.0)), float(1 / per_byte)


def points_of(times: Times) -> list[tuple[int, int, float]]:
    """(ranks, bytes, seconds) of every message."""
    return [
        (int(ranks), int(size), seconds)
        for ranks, found in times["messages"].items()
        for size, seconds in found["ours"].items()
    ]


def errors_of(points: list[tuple[int, int, float]], model: tuple[float, float, float]) -> list[float]:
    """By which factor the model is off, above one either way."""
    return [math.exp(abs(math.log(ring(n, size, *model) / seconds))) for n, size, seconds in points]


def report(times: Times) -> str:
    """The page of docs/."""
    points = points_of(times)
    overhead, latency, bandwidth = model = fit(points[::2])
    errors = errors_of(points[1::2], model)
    parts = [
        "# What several ranks cost\n",
        "Written by `python -m benchmarks.distributed`; [the guide](distributed.md) says how to use several ranks. "
        "One machine, through shared memory, one thread per rank.\n",
        "## Messages\n",
        f"{times['messages_measured']}\n",
        "Microseconds of an `all_reduce`, and of mpi4py's blocking `Allreduce` on the same memory:\n",
        _message_table(times),
        "## A training step\n",
        f"{times['measured']}\n",
        "A GPT of 4 layers, 128 wide, 8 sequences of 128 tokens per rank, AdamW. Milliseconds of a step with averaged "
        "gradients, of its computation alone (`no_sync`), and of averaging all gradients in one message with nothing to "
        "compute. Of each step counts the slowest rank, for whom the others must wait, and of all steps the fastest tenth. "
        "Throughput per rank is computation / step; beside one rank it is the step of one rank / step, which also holds how "
        "ranks slow each other down. Where there are more ranks than cores, or other programs, both hold waits for a core. "
        "Processor time is what all threads of rank 0 took of a core, the least of all steps, with averaging and without: "
        "that is alike on a busy machine and a quiet one. PyTorch is `DistributedDataParallel` over gloo.\n",
        _training_table(times),
        "## The model\n",
        f"`overhead + 2 (n - 1) latency + 2 (n - 1) / n · bytes / bandwidth` with overhead {overhead * 1e6:.1f} us, "
        f"latency {latency * 1e6:.2f} us and bandwidth {bandwidth / 1e9:.2f} GB/s, fitted on every second measurement. On "
        f"the others it is off by a factor of {statistics.median(errors):.2f} (median) and {max(errors):.2f} (worst): MPI "
        "changes its algorithm with the size, messages beyond the caches are slower, and ranks that share memory are not "
        "alike.\n",
        "## Predictions\n",
        "What the model says of the same step with one rank per machine on networks of these latencies and bandwidths: "
        f"first with as much of the averaging hidden behind backward as above ({_hidden(times):.0%} by processor time; cores"
        " that compute also move the messages of shared memory), then with all of it hidden that a network card could "
        "hide. **These are predictions, not measurements**: a network that is shared, or ranks that wait for the slowest, "
        "make them worse.\n",
        _prediction_table(times),
    ]
    return "\n".join(parts)


def _message_table(times: Times) -> str:
    counts = list(times["messages"])
    lines = [
        "| bytes | " + " | ".join(f"{n} ranks | mpi4py" for n in counts) + " |",
        "|---:" * (2 * len(counts) + 1) + "|",
    ]
    for size in times["messages"][counts[0]]["ours"]:
        row = [f"{int(size):,}"]
        for n in counts:
            row.append(f"{times['messages'][n]['ours'][size] * 1e6:,.0f}")
            alone = times["messages"][n]["mpi4py"].get(size)
            row.append("" if alone is None else f"{alone * 1e6:,.0f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def _training_table(times: Times) -> str:
    lines = [
        "| | step | computation | averaging | throughput per rank | beside one rank | processor time | without averaging "
        "| ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, key in (("pullback", "training"), ("PyTorch", "torch")):
        alone = times[key].get("1", {}).get("step")
        lines += [_training_row(f"{name}, {n} rank{'s' * (n != '1')}", found, alone) for n, found in times[key].items()]
    alone = times["training"].get("1", {}).get("step")
    lines += [_training_row(f"pullback, 2 ranks, {name}", found, alone) for name, found in times["compressed"].items()]
    return "\n".join(lines) + "\n"


def _training_row(name: str, found: Times, alone: float | None) -> str:
    return (
        f"| {name} | {found['step'] * 1e3:.1f} | {found['computation'] * 1e3:.1f} | {found['averaging'] * 1e3:.2f} | "
        f"{found['computation'] / found['step']:.2f} | {alone / found['step'] if alone else 1:.2f} | "
        f"{found['step_processor'] * 1e3:.1f} | {found['computation_processor'] * 1e3:.1f} | "
        f"{found['computation_processor'] / found['step_processor']:.2f} |"
    )


def _hidden(times: Times) -> float:
    """The part of averaging that does not lengthen a step, on two ranks."""
    found = times["training"].get("2") or next(iter(times["training"].values()))
    exposed = (found["step_processor"] - found["computation_processor"]) / found["averaging"]
    return min(max(1 - exposed, 0.0), 1.0)


def _prediction_table(times: Times) -> str:
    found = times["training"].get("2") or next(iter(times["training"].values()))
    counts = [16, 64, 256, 1024]
    lines = ["| network | " + " | ".join(f"{n} ranks" for n in counts) + " |", "|---" + "|---:" * len(counts) + "|"]
    for name, (latency, bandwidth) in NETWORKS.items():
        row = [name]
        for n in counts:
            computation, averaging = found["computation_processor"], ring(n, found["bytes"], 20e-6, latency, bandwidth)
            most = 0.6 * computation  # backward is about 0.6 of a step
            exposed = [averaging - min(part * averaging, most) for part in (_hidden(times), 1.0)]
            row.append(" to ".join(f"{computation / (computation + rest):.2f}" for rest in exposed))
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n\nThroughput per rank, as a part of what one rank alone reaches.\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=1, help="how often all is measured; the best counts")
    parser.add_argument("--python", default="", help="an interpreter that has pullback installed")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--only", choices=["messages", "training"], default="")
    parser.add_argument("--from", dest="source", help="take the times from this file")
    parser.add_argument("--json", help="write the times to this file")
    parser.add_argument("--write", help="write the page to this file")
    given = parser.parse_args(arguments)
    if given.source:
        times = json.loads(Path(given.source).read_text())
    else:
        times = measure(given)
    if given.json:
        Path(given.json).write_text(json.dumps(times, indent=1) + "\n")
    if given.write:
        Path(given.write).write_text(report(times))
    elif given.only or not times["messages"]:
        print(_training_table(times) if times["training"] else _message_table(times))
    else:
        print(report(times))


if __name__ == "__main__":
    main(sys.argv[1:])
