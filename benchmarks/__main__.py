"""Compare pullback with PyTorch.

`python -m benchmarks [--quick] [--threads 1 2] [--only TEXT] [--python FILE] [--instructions] [--json FILE] [--write]`
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.comparison import Interpreters, NotComparableError, compare
from benchmarks.instructions import count_instructions
from benchmarks.machine import ForeignLoad, describe
from benchmarks.startup import compare_startup
from benchmarks.workloads import WORKLOADS

DOCUMENTS = Path(__file__).parents[1] / "docs"


def main() -> int:
    """Measure what was asked for; the status is 1 if a workload failed or its gradients differ."""
    options = _parse()
    interpreters = Interpreters(options.python)
    if options.instructions:
        return _count(options, interpreters)
    turns, seconds = options.turns or (5 if options.quick else 15), 0.1 if options.quick else 0.3
    load, rows, wrong = ForeignLoad(), [], []
    for threads in options.threads:
        for name in _wanted(options):
            try:
                rows.append(compare(WORKLOADS[name], threads, turns, seconds, interpreters))
            except NotComparableError as error:
                wrong.append(str(error))
                print(error)
            else:
                print(report.line(rows[-1]), flush=True)
        if threads == 1 and not options.only:
            rows += _show(compare_startup(min(turns, 5), interpreters))
        report.mark_distorted(rows)
        print(f"geometric mean, {threads} thread(s): {report.geometric_mean(_with_threads(rows, threads)):.2f}")
    results: dict[str, Any] = {"machine": describe(interpreters), "load": load.report(), "rows": rows}
    print(report.load_sentence(results["load"]))
    _write(results, options)
    return int(bool(wrong))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smaller workloads, few turns: under three minutes")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--turns", type=int, help="turns of each framework")
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that pullback is installed for")
    parser.add_argument("--instructions", action="store_true", help="count instructions of small workloads (valgrind)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", action="store_true", help="put table and plot into docs/performance.md")
    return parser.parse_args()


def _wanted(options: argparse.Namespace) -> list[str]:
    return [
        name for name, workload in WORKLOADS.items() if options.only in name and (workload.quick or not options.quick)
    ]


def _count(options: argparse.Namespace, interpreters: Interpreters) -> int:
    """Count instead of timing: the same on a busy machine as on a quiet one."""
    wanted = [name for name in _wanted(options) if WORKLOADS[name].small]
    rows = _show(count_instructions(wanted, interpreters))
    print(f"geometric mean: {report.geometric_mean(rows):.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": describe(interpreters), "rows": rows}, indent=1) + "\n")
    return 0


def _show(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        print(report.line(row), flush=True)
    return rows


def _with_threads(rows: list[dict[str, Any]], threads: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["threads"] == threads]


def _write(results: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.write:
        page = DOCUMENTS / "performance.md"
        page.write_text(report.document(results, page))
        (DOCUMENTS / "performance.svg").write_text(report.plot(_with_threads(results["rows"], options.threads[0])))


if __name__ == "__main__":
    sys.exit(main())
