"""Count the instructions of small workloads under valgrind: what decides where a busy machine makes times too noisy.

One process per framework runs all workloads, since importing PyTorch takes a minute under valgrind. What a command
executed is read from callgrind's counter, which a dump writes out and resets.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.comparison import FRAMEWORKS, Interpreters, Worker
from benchmarks.workloads import WORKLOADS

WARM_UP, RUNS = 2, 2


def count_instructions(names: list[str], interpreters: Interpreters) -> list[dict[str, Any]]:
    """One row per workload, in the form of the timed ones."""
    if shutil.which("valgrind") is None or shutil.which("vgdb") is None:
        raise SystemExit("counting instructions needs valgrind: install it, or time with `python -m benchmarks`")
    counts = {framework: _counts(framework, names, interpreters) for framework in FRAMEWORKS} if names else {}
    rows = []
    for position, name in enumerate(names):
        measured = {framework: counts[framework][position] for framework in FRAMEWORKS}
        ratio = measured["pullback"] / measured["torch"]
        rows.append({"workload": name, "measures": "instructions", "threads": 1, **measured, "ratio": ratio,
                     "spread": [ratio, ratio], "goal": WORKLOADS[name].goal})  # fmt: skip
    return rows


def _counts(framework: str, names: list[str], interpreters: Interpreters) -> list[float]:
    """The instructions of one run of each workload."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "counts")
        under = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={output}"]
        worker = Worker(framework, names[0], 1, interpreters, under)
        counts = []
        try:
            for name in names:
                worker.ask(f"workload {name}")
                worker.ask(f"runs {WARM_UP}")
                _instructions_since(worker, output)
                worker.ask(f"runs {RUNS}")
                counts.append(_instructions_since(worker, output) / RUNS)
        finally:
            worker.close()
    return counts


def _instructions_since(worker: Worker, output: Path) -> int:
    """What the worker executed since it was asked this the last time."""
    former = set(output.parent.iterdir())
    subprocess.run(["vgdb", f"--pid={worker.pid}", "dump"], check=True, capture_output=True)
    (written,) = set(output.parent.iterdir()) - former
    found = re.search(r"^totals: (\d+)", written.read_text(), re.MULTILINE)
    assert found is not None, "callgrind wrote no total"
    return int(found[1])
