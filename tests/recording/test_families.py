"""Families whose text is written when they are first used. See Note [Families on first use]."""

from __future__ import annotations

import ast
import inspect
import linecache
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

import pytest

import pullback
import pullback.generated as F
from pullback.generated.registry import OPERATIONS
from pullback.recording.families import FamilyLoader, text_of_family, write_families
from tools.codegen.generator import SOURCE, is_on_first_use

FAMILIES = [path.stem for path in sorted((SOURCE / "derivatives").glob("*.py")) if is_on_first_use(path)]


import_module("pullback.generated.ldl")
in_a_checkout = pytest.mark.skipif(text_of_family("ldl") is None, reason="the installed package holds the text")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_written_on_first_use_has_all_of_its_operations(family: str) -> None:
    module = import_module(f"pullback.generated.{family}")
    names = [name for name, operation in OPERATIONS.items() if operation.family == family]
    assert names
    assert all(callable(getattr(module, name)) for name in names)
    assert all(getattr(module, f"{name}_").__module__ == module.__name__ for name in names if OPERATIONS[name].in_place)


@in_a_checkout
def test_compiled_lines_of_rules_are_used() -> None:
    module = import_module("pullback.generated.special")
    text = text_of_family("special") or ""
    functions = {item.name: item for item in ast.parse(text).body if isinstance(item, ast.FunctionDef)}
    assert [ast.unparse(mark) for mark in functions["erf_grad_of_input"].decorator_list] == ["native"]
    assert module.ErfBackward0.fresh == (True,)
    assert text_of_family("arithmetic") is None


def test_tracebacks_and_inspection_show_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linecache, "cache", {})
    with pytest.raises(RuntimeError) as caught:
        F.igamma(pullback.ones(2), pullback.ones(3))
    assert "refuse('igamma', error, locals())" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert inspect.getsource(F.erf).startswith("def erf(input: Tensor")


def test_the_compiled_form_is_kept_and_made_anew_when_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    loader = FamilyLoader("pullback.generated.ldl", ["ldl"], [])
    written: list[str] = []

    def write(name: str) -> str:
        written.append(name)
        return "x = 1\n"

    monkeypatch.setattr(loader, "get_source", write)
    first, second = loader.get_code(loader.name), loader.get_code(loader.name)
    assert written == [loader.name]
    assert first == second
    monkeypatch.setattr(loader, "_state_of_sources", lambda: b"changed")
    loader.get_code(loader.name)
    assert len(written) == 2


def test_plain_programs_write_no_family() -> None:
    program = "import sys, pullback; x = pullback.ones(3, requires_grad=True); (x * x).sum().backward()\n"
    program += "print('pullback.recording.families' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@in_a_checkout
def test_an_installed_package_holds_the_text(tmp_path: Path) -> None:
    source = Path(import_module("pullback.generated.ldl").__file__ or "")
    (tmp_path / "ldl.py").write_text(source.read_text())
    (tmp_path / "arithmetic.py").write_text("unchanged = True\n")
    assert write_families(tmp_path) == ["ldl"]
    assert (tmp_path / "ldl.py").read_text() == text_of_family("ldl")
    assert (tmp_path / "arithmetic.py").read_text() == "unchanged = True\n"
