"""The machine that measurements were made on, and how busy others kept it meanwhile."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.comparison import Interpreters


def describe(interpreters: Interpreters) -> dict[str, Any]:
    """Processor, number of cores, the versions of what is compared, and how pullback was built."""
    return {**hardware(), "pullback": _configuration(interpreters)}


def hardware() -> dict[str, Any]:
    """Processor, number of cores and the versions of what is compared."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("torch", "numpy", "pullback")},
    }


def sentence(machine: dict[str, Any]) -> str:
    """The hardware and the versions, as the pages of results say it."""
    versions = machine["versions"]
    return (
        f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"PyTorch {versions['torch']}, NumPy {versions['numpy']}."
    )


def _configuration(interpreters: Interpreters) -> list[str]:
    """What pullback says of itself: which modules are compiled, which BLAS it calls."""
    command = [
        *interpreters.command("pullback"),
        "-c",
        "import pullback.backend.configuration as c; print(c.describe_config())",
    ]
    environment = interpreters.environment("pullback")
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return shown.rstrip().splitlines()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "source tree"


class ForeignLoad:
    """How many cores other processes used while this one and its children measured.

    From the processor time of the whole system (Linux only) less our own; the load averages stand beside it.
    """

    def __init__(self) -> None:
        self._start = (time.perf_counter(), _busy_seconds(), _own_seconds())
        self._before = os.getloadavg()

    def report(self) -> dict[str, Any]:
        """What is known once every child has ended."""
        wall, busy, own = self._start
        elapsed = time.perf_counter() - wall
        now = _busy_seconds()
        foreign = None if busy is None or now is None else max(0.0, now - busy - (_own_seconds() - own)) / elapsed
        return {
            "load_average_before": self._before,
            "load_average_after": os.getloadavg(),
            "foreign_cores": foreign,
            "seconds": elapsed,
        }


def _busy_seconds() -> float | None:
    statistics = Path("/proc/stat")
    if not statistics.exists():
        return None
    user, nice, system, _idle, _wait, *interrupts = map(int, statistics.read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
