"""Compare every operation with PyTorch: `python -m tests.conformance [--op add] [--family fft] [--planted]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from pullback.progress import is_watched

from . import report

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Run what the command line asks for; the status is 1 if anything differs."""
    arguments = _parse()
    if arguments.planted:
        from .planted import show_that_faults_are_caught

        return show_that_faults_are_caught()
    if arguments.quiet:
        os.environ["PULLBACK_PROGRESS"] = "0"
    if arguments.dtypes:
        os.environ["CONFORMANCE_DTYPES"] = arguments.dtypes
    if arguments.reference:
        os.environ["CONFORMANCE_SAMPLES"] = "reference"
    if arguments.device:
        os.environ["CONFORMANCE_DEVICE"] = arguments.device
    from .supervisor import run

    families, results = run(_wanted(arguments), arguments.samples, _progress(arguments.quiet), arguments.processes)
    missing = {} if arguments.device else _missing_names(arguments)
    print()
    print("\n".join(report.failures(results, arguments.show)))
    for namespace, names in missing.items():
        if names:
            print(f"missing in {namespace}: {' '.join(names)}")
    print("\n".join(report.table(families, results)))
    if arguments.json:
        data = {"families": families, "results": results, "missing": missing}
        Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.json).write_text(json.dumps(data, indent=1) + "\n")
    if not (arguments.op or arguments.family or arguments.dtypes or arguments.reference):
        page = "operations_on_the_gpu.md" if arguments.device else "operations.md"
        (ROOT / "docs" / page).write_text(report.document(families, results, missing, arguments.device))
    print(report.last_line(results, sum(map(len, missing.values()))))
    return int(any(tally["failed"] for result in results.values() for tally in result.values()))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--op", action="append", default=[], help="one operation by name (again for more)")
    parser.add_argument("--family", action="append", default=[], help="the families whose name has this word")
    parser.add_argument("--samples", type=float, default=1.0, help="multiply how many samples are drawn")
    parser.add_argument("--dtypes", help="other dtypes than the usual four, separated by commas")
    parser.add_argument("--reference", action="store_true", help="draw PyTorch's larger sets of samples")
    parser.add_argument("--device", default="", help="examine ours on this device: cuda, or the stand-in fake")
    parser.add_argument("--processes", type=int, default=1, help="how many operations are examined at once")
    parser.add_argument("--show", type=int, default=2, help="how many failures of a kind to show")
    parser.add_argument("--json", default="build/conformance.json", help="where the results go as JSON")
    parser.add_argument("--quiet", action="store_true", help="no line of progress")
    parser.add_argument("--planted", action="store_true", help="show that faults planted on purpose are caught")
    return parser.parse_args()


def _wanted(arguments: argparse.Namespace) -> Any:
    def wanted(name: str, family: str) -> bool:
        if not (arguments.op or arguments.family):
            return True
        plain = name.split(" ")[0]
        named = any(word in (name, plain, plain.split(".")[-1]) for word in arguments.op)
        return named or any(word in family for word in arguments.family)

    return wanted


def _progress(quiet: bool) -> Any:
    """A bar for who looks, and a sign for each entry in a log."""
    is_bar = is_watched()

    def progress(name: str, result: dict[str, Any]) -> None:
        failed = any(tally["failed"] for tally in result.values())
        if not quiet and (failed or not is_bar):
            print(f"{name} failed" if is_bar else "F" if failed else ".", end="\n" if is_bar else "", flush=True)

    return progress


def _missing_names(arguments: argparse.Namespace) -> dict[str, list[str]]:
    if arguments.op or arguments.family:
        return {}
    from .names import missing_names

    return missing_names()


if __name__ == "__main__":
    sys.exit(main())
