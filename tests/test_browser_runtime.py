"""pullback where there are no threads, processes, ctypes nor compiled code: Python in a browser (WebAssembly)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pullback


def test_a_network_is_trained_without_threads_processes_and_ctypes(tmp_path: Path) -> None:
    package = Path(pullback.__file__).parent
    shutil.copytree(
        package, tmp_path / "pullback", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    )
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    program = shutil.copy(Path(__file__).parent / "browser_program.py", tmp_path)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=variables, check=False)
    assert done.stdout.endswith("DONE\n"), done.stderr
    assert "compiled: nothing (pure Python)" in done.stdout
