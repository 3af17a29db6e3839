"""`pullback run` behaves as `python` does, with `torch` meaning pullback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def execute(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def run_script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text, encoding="utf-8")
    return execute(folder, "-m", "pullback", "run", "script.py", *arguments)


def test_torch_means_pullback(tmp_path: Path) -> None:
    process = run_script(tmp_path, "import torch, sys; print(torch is sys.modules['pullback'])")
    assert process.stdout == "True\n"


def test_script_sees_its_own_arguments(tmp_path: Path) -> None:
    process = run_script(tmp_path, "import sys; print(sys.argv)", "--epochs", "3", "-h")
    assert process.stdout == "['script.py', '--epochs', '3', '-h']\n"


def test_script_is_the_main_module(tmp_path: Path) -> None:
    text = "import sys\nx = 1\nprint(__name__, __file__, sys.modules['__main__'].x, __spec__)"
    assert run_script(tmp_path, text).stdout == "__main__ script.py 1 None\n"


def test_script_imports_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "neighbour.py").write_text("value = 7", encoding="utf-8")
    (tmp_path / "inner" / "script.py").write_text("import neighbour; print(neighbour.value)", encoding="utf-8")
    assert execute(tmp_path, "-m", "pullback", "run", "inner/script.py").stdout == "7\n"


def test_object_of_the_script_can_be_pickled(tmp_path: Path) -> None:
    text = "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)"
    assert run_script(tmp_path, text).stdout == "True\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('no')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_status_is_the_script_s(tmp_path: Path, text: str, status: int) -> None:
    assert run_script(tmp_path, text).returncode == status


@pytest.mark.parametrize("text", ["def f():\n    1 / 0\nf()\n", "x = (\n", "import no_such_module\n"])
def test_traceback_is_the_one_that_python_shows(tmp_path: Path, text: str) -> None:
    actual = run_script(tmp_path, text).stderr
    expected = execute(tmp_path, "script.py").stderr
    assert actual == expected.replace(str(tmp_path) + os.sep, "")


def test_missing_script_is_reported_as_by_python(tmp_path: Path) -> None:
    process = execute(tmp_path, "-m", "pullback", "run", "missing.py")
    assert process.returncode == 2
    assert process.stderr.startswith("pullback: can't open file '")
    assert process.stderr.endswith("missing.py': [Errno 2] No such file or directory\n")


def test_module_is_run_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys, torch; print(__name__, sys.argv[1:])", encoding="utf-8")
    process = execute(tmp_path, "-m", "pullback", "run", "-m", "program", "a")
    assert process.stdout == "__main__ ['a']\n"


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run"], ["run", "--fast"]])
def test_wrong_command_shows_the_usage(tmp_path: Path, arguments: list[str]) -> None:
    process = execute(tmp_path, "-m", "pullback", *arguments)
    assert process.returncode == 2
    assert process.stderr.startswith("usage: pullback run script.py")


def test_version_is_shown(tmp_path: Path) -> None:
    assert execute(tmp_path, "-m", "pullback", "--version").stdout == "pullback 0.1.0\n"
