"""Starts ranks for tests: programs in files, and the functions of `checks`, all of which run in one start."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pullback.distributed.launch import is_open_mpi

ROOT = Path(__file__).parent.parent.parent
MPIEXEC = Path(sys.executable).parent / "mpiexec"

PATIENCE = 300
"""Seconds after which a test calls it a hang: loaded machines take many times as long as idle ones."""

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="several ranks need MPI: pip install 'pullback[mpi]'",
)

mpich_alone = pytest.mark.skipif(
    MPIEXEC.exists() and is_open_mpi(str(MPIEXEC)), reason="Open MPI cannot do this: see docs/distributed.md"
)


def launch(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `pullback launch` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "pullback", "launch", *arguments],
        capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, env=environment(**variables), check=False,
    )  # fmt: skip


def environment(**variables: str) -> dict[str, str]:
    """This process's variables, with pullback on the path."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PULLBACK_DEVICES": "1", **variables}


def free_port() -> int:
    """A port that nobody listens on, and that the system gives to nobody who asks for any (those lie above 32767)."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        try:
            with socket.create_server(("", port)):
                return port
        except OSError:
            continue


def launch_text(text: str, folder: Path, ranks: int = 2, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on several ranks."""
    script = folder / "program.py"
    script.write_text(text)
    return launch("-n", str(ranks), str(script), **variables)


def checks_of(module: ModuleType) -> list[Callable[[], None]]:
    """The functions of a module whose names begin with `check_`, in the order in which they stand there."""
    found = [value for name, value in vars(module).items() if name.startswith("check_") and inspect.isfunction(value)]
    return sorted(found, key=lambda function: function.__code__.co_firstlineno)


def names_of(modules: list[str]) -> list[str]:
    """The checks of these modules of `checks`, as `module.function`."""
    loaded = [importlib.import_module(f"tests.distributed.checks.{name}") for name in modules]
    return [f"{name}.{f.__name__}" for name, module in zip(modules, loaded, strict=True) for f in checks_of(module)]


def run_checks(modules: list[str], ranks: int, folder: Path) -> dict[str, str]:
    """Run all checks of these modules on as many ranks; per check "" or what went wrong."""
    done = launch("-n", str(ranks), "-m", "tests.distributed.rank_program", str(folder), *modules,
                  TORCH_DISTRIBUTED_DEBUG="DETAIL")  # fmt: skip
    outcomes: dict[str, str] = {}
    for rank in range(ranks):
        path = folder / f"rank{rank}.json"
        for name, text in json.loads(path.read_text() if path.exists() else "{}").items():
            outcomes[name] = outcomes.get(name, "") + (f"rank {rank}:\n{text}" if text else "")
    missing = (
        f"it did not run on every rank (exit status {done.returncode})\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return {name: outcomes.get(name, missing) for name in names_of(modules)}
