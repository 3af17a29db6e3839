"""torch.cuda with two GPUs, on a stand-in for CuPy: in a process of its own, since there pullback finds a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.emulator.launching import COMPILER

STAND_IN = Path(__file__).with_name("stand_in")


@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile CUDA's text with")
@pytest.mark.parametrize("file", sorted(path.name for path in STAND_IN.glob("test_*.py")))
def test_programs_on_stand_in_gpus(file: str) -> None:
    root = STAND_IN.parents[2]
    places = [str(STAND_IN), str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PULLBACK_DEVICES": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(STAND_IN / file)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
