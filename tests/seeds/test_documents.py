"""Every code block of the documents that pullback implements prints what it prints under PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
DOCUMENTS: dict[str, Any] = json.loads((FOLDER / "blocks.json").read_text(encoding="utf-8"))
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
BLOCKS = [
    pytest.param(name, variant, number, id=f"{name}-{variant.replace(' ', '_')}-{number}")
    for name, variants in EXPECTED.items()
    for variant, results in variants.items()
    for number in range(len(results))
]


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def actual(working_folder: Path) -> Any:
    source = str(FOLDER.parent.parent / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(FOLDER / "run_blocks.py"), "--pullback"]
    process = subprocess.run(command, cwd=working_folder, env=environment, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout)


@pytest.mark.parametrize(("name", "variant", "number"), BLOCKS)
def test_block_behaves_as_under_pytorch(name: str, variant: str, number: int, actual: Any) -> None:
    assert actual[name][variant][number] == EXPECTED[name][variant][number], "\n".join(
        DOCUMENTS[name]["blocks"][number]["code"]
    )


def test_torchviz_block_leaves_a_picture(actual: Any, working_folder: Path) -> None:
    assert list(working_folder.glob("computation_graph*"))
