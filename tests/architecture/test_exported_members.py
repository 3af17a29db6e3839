"""What the package says it exports exists, and importing it loads nothing that it does not need."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from tests.cases import each_case, named

NOT_FOR_IMPORT = {"pullback.__main__"}
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(pullback.__path__, "pullback.") if module.name not in NOT_FOR_IMPORT
)


@each_case(named("name", ["pullback", *MODULES]))
def test_every_exported_name_exists(name: str) -> None:
    module = importlib.import_module(name)
    missing = [member for member in getattr(module, "__all__", []) if not hasattr(module, member)]
    assert missing == []


@each_case(named("name", ["pullback", *MODULES]))
def test_every_module_says_what_it_is(name: str) -> None:
    assert importlib.import_module(name).__doc__


def test_every_listed_name_of_the_package_can_be_read() -> None:
    assert [name for name in dir(pullback) if not hasattr(pullback, name)] == []


HEAVY = ["torch", "scipy", "multiprocessing", "unittest", "asyncio", "ml_dtypes", "importlib.resources", "zipfile",
         "tempfile", "numpy.random", "pullback.backend.random", "pullback.nn", "pullback.optim", "pullback.func",
         "pullback.kernels.special", "pullback.autograd.function", "pullback.autograd.forward_ad",
         "pullback.autograd.gradient_check"]  # fmt: skip


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_the_package_does_not_load(heavy: str) -> None:
    program = f"import numpy, sys; before = {heavy!r} in sys.modules; import pullback; "
    program += f"print({heavy!r} in sys.modules and not before)"
    environment = {**os.environ, "PYTHONPATH": str(Path(pullback.__path__[0]).parent)}
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"
