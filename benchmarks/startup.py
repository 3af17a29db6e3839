"""What a framework costs before it does anything: the time of its import and the size of its installation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.comparison import FRAMEWORKS, Interpreters

GOALS = {"import": 0.083, "size": 0.085}


def import_seconds(module: str, interpreters: Interpreters) -> float:
    """The seconds of processor time that a fresh process needs to import `module`."""
    program = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    command = [*interpreters.command(module), "-c", program]
    environment = interpreters.environment(module)
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def installed_size(name: str) -> int:
    """The bytes of a distribution and of everything installed that it requires."""
    wanted, total = [name], 0
    seen: set[str] = set()
    while wanted:
        current = wanted.pop()
        if current in seen:
            continue
        seen.add(current)
        size, requirements = _distribution(current)
        total += size
        wanted += requirements
    return total


def size_where_installed(name: str, interpreters: Interpreters) -> int:
    """The size of a distribution as the interpreter that it is installed for sees it."""
    command = [*interpreters.command(name), "-m", "benchmarks.startup", name]
    environment = interpreters.environment(name)
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def _distribution(name: str) -> tuple[int, list[str]]:
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return (_source_tree_size(), ["numpy"]) if name == "pullback" else (0, [])
    if found.files is None or name == "pullback":  # an editable installation lists no sources
        size = _source_tree_size()
    else:
        paths = [Path(str(found.locate_file(file))) for file in found.files]
        size = sum(path.stat().st_size for path in paths if path.exists())
    required = [line for line in found.requires or () if "extra ==" not in line]
    return size, [re.split(r"[^\w.-]", line)[0].lower() for line in required]


def _source_tree_size() -> int:
    spec = importlib.util.find_spec("pullback")
    assert spec is not None
    assert spec.origin is not None
    return sum(path.stat().st_size for path in Path(spec.origin).parent.rglob("*") if path.is_file())


def compare_startup(turns: int, interpreters: Interpreters) -> list[dict[str, Any]]:
    """Rows for import time and installed size, in the form of the other workloads; NumPy's own share beside them."""
    times: dict[str, list[float]] = {module: [] for module in (*FRAMEWORKS, "numpy")}
    for _ in range(turns + 1):  # the first turn reads the files from the disk
        for module in times:
            times[module].append(import_seconds(module, interpreters))
    ratios = [own / other for own, other in zip(times["pullback"][1:], times["torch"][1:], strict=True)]
    seconds = {module: min(values) for module, values in times.items()}
    sizes = {module: size_where_installed(module, interpreters) for module in times}
    size_ratio = sizes["pullback"] / sizes["torch"]
    return [
        _row("import", "time", seconds, [min(ratios), max(ratios)], GOALS["import"]),
        _row("installed size with requirements", "size", sizes, [size_ratio, size_ratio], GOALS["size"]),
    ]


def _row(name: str, measures: str, measured: dict[str, Any], spread: list[float], goal: float) -> dict[str, Any]:
    ratio = measured["pullback"] / measured["torch"]
    return {
        "workload": name,
        "measures": measures,
        "threads": 1,
        **measured,
        "ratio": ratio,
        "spread": spread,
        "goal": goal,
    }


if __name__ == "__main__":
    print(installed_size(sys.argv[1]))
