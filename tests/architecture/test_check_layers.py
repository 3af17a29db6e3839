"""The layer checker finds what breaks the layers, and finds nothing in the source as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_layers

SOURCE = Path(check_layers.__file__).parent.parent / "src" / "pullback"


def violations_of(folder: Path, name: str, text: str) -> list[str]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [violation.message for violation in check_layers.check(folder)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernels/unary.py", "from pullback.tensor.tensor import Tensor\n"),
        ("kernels/unary.py", "from pullback.modes import grad_mode\n"),
        ("modes/grad_mode.py", "import pullback.kernels.unary\n"),
        ("graph/node.py", "from ..engine import engine\n"),
        ("graph/node.py", "from pullback import autograd\n"),
        ("graph/node.py", "def run():\n    from pullback.engine import engine\n"),
        ("graph/node.py", "from pullback.engine import engine  # lazy: not inside a function\n"),
        ("graph/node.py", "import pullback\n"),
        ("graph/node.py", "from pullback import Tensor\n"),
        ("errors.py", "from pullback.backend import dtype\n"),
        ("utils/data.py", "from pullback.nn import Module\n"),
        ("tensor/tensor.py", "import pullback.engine\n"),
    ],
)
def test_import_from_a_higher_layer_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (message,) = violations_of(tmp_path, name, text)
    assert "import only from your own folder or a lower layer" in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph/node.py", "from pullback.tensor.tensor import Tensor\n"),
        ("graph/node.py", "from .edge import Edge\n"),
        ("graph/node.py", "from pullback.graph import edge\n"),
        (
            "graph/node.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pullback.engine import engine\n",
        ),
        ("graph/node.py", "def run():\n    from pullback.engine import engine  # lazy: only when it runs\n"),
        ("tensor/tensor.py", "from pullback import functions\n"),
        ("optim/sgd.py", "from pullback import nn\n"),
        ("optim/sgd.py", "import pullback\n"),
        ("optim/sgd.py", "from pullback import Tensor\n"),
        ("kernels/unary.py", "import numpy as np\n"),
        ("__init__.py", "from pullback.autograd import grad\n"),
    ],
)
def test_import_from_own_folder_or_a_lower_layer_is_accepted(tmp_path: Path, name: str, text: str) -> None:
    assert violations_of(tmp_path, name, text) == []


@pytest.mark.parametrize("library", ["numpy", "cupy", "numpy.linalg"])
def test_array_library_outside_its_parts_is_refused(tmp_path: Path, library: str) -> None:
    (message,) = violations_of(tmp_path, "tensor/tensor.py", f"def run():\n    import {library}  # lazy: no excuse\n")
    assert "only backend and checks and compiling and devices and kernels import" in message


def test_import_of_pytorch_is_refused(tmp_path: Path) -> None:
    (message,) = violations_of(tmp_path, "backend/dtype.py", "import torch\n")
    assert "never imports PyTorch" in message


def test_violation_says_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    path = tmp_path / "engine" / "engine.py"
    path.write_text("\n\nimport pullback.autograd\n", encoding="utf-8")
    assert str(check_layers.check(tmp_path)[0]).startswith(f"{path}:3: ")


def test_main_fails_when_there_is_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "errors.py").write_text("import pullback.nn\n", encoding="utf-8")
    assert check_layers.main([str(tmp_path)]) == 1
    assert "errors.py:1" in capsys.readouterr().out


def test_source_keeps_to_its_layers() -> None:
    assert [str(violation) for violation in check_layers.check(SOURCE)] == []
