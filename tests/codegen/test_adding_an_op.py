"""The steps of docs/adding_an_op.md, followed: inside of a copy of the package, and in a program outside of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pullback
from pullback.autograd import gradcheck
from tools.codegen.generator import ROOT, SOURCE, generate

GUIDE = (ROOT / "docs" / "adding_an_op.md").read_text(encoding="utf-8")
CHECK = """
import pullback
from pullback.autograd import gradcheck, gradgradcheck
numbers = [pullback.randn(3, 4), pullback.randn(4), pullback.rand(3, 1)]
inputs = [x.double().requires_grad_() for x in numbers]
result = pullback.generated.blend(*inputs)
assert result.grad_fn.name() == "BlendBackward0", result.grad_fn
assert pullback.allclose(result, pullback.lerp(*inputs))
assert gradcheck(pullback.generated.blend, inputs, check_forward_ad=True)
assert gradgradcheck(pullback.generated.blend, inputs)
pullback.generated.blend_(inputs[0] * 1, *inputs[1:])
print("checked")
"""


def block(section: str) -> str:
    """The first program of a section."""
    text = GUIDE[GUIDE.index(f"## {section}") :]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_steps_inside_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "pullback"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for section, folder in (("1. The kernel", "kernels"), ("2. The rule", "derivatives")):
        path = package / folder / "clamping.py"
        path.write_text(path.read_text(encoding="utf-8") + "\n\n" + block(section).replace("lerp", "blend"))
    files, refusals = generate(package)
    assert refusals == []
    for path, text in files.items():
        path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "checked\n", ran.stderr


def test_the_steps_outside_of_the_package(tmp_path: Path) -> None:
    path = tmp_path / "own_operations.py"
    path.write_text(block("Outside of the package").replace("softcube", "guided_cube"))
    spec = importlib.util.spec_from_file_location("own_operations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = pullback.tensor([0.5, -1.5], dtype=pullback.float64, requires_grad=True)
    assert module.guided_cube(x).grad_fn.name() == "GuidedCubeBackward0"
    assert gradcheck(module.guided_cube, (x,), check_forward_ad=True)
    assert len(block("Outside of the package").replace("\n\n", "\n").strip().splitlines()) <= 12
