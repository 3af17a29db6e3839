from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.typed_uses.checking import complained_lines, marked_lines
from tools.stubs.__main__ import FOLDER


def test_stubs_are_fresh() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.stubs", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_mypy_finds_the_wrong_uses_and_no_other() -> None:
    assert complained_lines("mypy") == marked_lines()


@pytest.mark.parametrize("checker", ["basedpyright", "pyright"])
def test_pyright_finds_the_wrong_uses_and_no_other(checker: str) -> None:
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} is not installed")
    assert complained_lines(checker) == marked_lines()


def test_every_folder_of_stubs_has_an_init() -> None:
    """jedi, which completes `x.` in editors and notebooks, does not look into other folders."""
    assert [str(f) for f in FOLDER.rglob("*") if f.is_dir() and not (f / "__init__.pyi").exists()] == []


def test_classes_of_layers_are_imported_by_their_stub() -> None:
    assert "type[Any]" not in (FOLDER / "nn" / "__init__.pyi").read_text("utf-8")
