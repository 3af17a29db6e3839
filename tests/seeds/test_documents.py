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


def is_as_expected(actual: Any, expected: list[str] | None) -> bool:
    """Whether an exception or a warning is of the expected class, or a kind of it, and bears the key phrase."""
    if actual is None or expected is None:
        return actual is expected
    kind, phrase = expected
    return kind in actual["classes"] and phrase in actual["message"]


@pytest.mark.parametrize(("name", "variant", "number"), BLOCKS)
def test_block_behaves_as_under_pytorch(name: str, variant: str, number: int, actual: Any) -> None:
    result, expected = actual[name][variant][number], EXPECTED[name][variant][number]
    code = "\n".join(DOCUMENTS[name]["blocks"][number]["code"])
    assert result["output"] == expected["output"], code
    assert is_as_expected(result["exception"], expected["exception"]), (code, result["exception"])
    assert len(result["warnings"]) == len(expected["warnings"]), (code, result["warnings"])
    assert all(map(is_as_expected, result["warnings"], expected["warnings"])), (code, result["warnings"])


def test_torchviz_block_leaves_a_picture(actual: Any, working_folder: Path) -> None:
    assert list(working_folder.glob("computation_graph*"))
