"""The kernels that are written with vectors are accepted by clang too, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy
import pytest

import pullback.native

FOLDER = Path(pullback.native.__file__).parent


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize("target", [['-DONLY_TARGET="arch=x86-64-v4"'], []], ids=["one machine", "any machine"])
def test_clang_compiles_products_of_vectors(tmp_path: Path, target: list[str]) -> None:
    includes = [f"-I{folder}" for folder in (FOLDER, sysconfig.get_path("include"), numpy.get_include())]
    command = ["clang", "-c", "-O1", "-w", "-fPIC", *includes, *target, str(FOLDER / "products.c")]

    compiled = subprocess.run(
        [*command, "-o", str(tmp_path / "products.o")], capture_output=True, text=True, check=False
    )

    assert compiled.returncode == 0, compiled.stderr[-2000:]
