"""The table checker finds lists of operations, tells them from other words, and holds the debts to their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_tables

RULES = """
@elementwise
def add(grad, input): ...
@elementwise(public="mul")
def mul_scalar(grad, input): ...
@linear
def sum(grad, input): ...
@tangent
def sum_tangent(input): ...
@general
def mean(grad, input): ...
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for folder, text in {"derivatives": RULES, "functions": "def norm(input): ...\ndef _helper(input): ...\n"}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "family.py").write_text(text, encoding="utf-8")
    return tmp_path


def objections_to(source: Path, text: str, file: str = "module.py") -> list[str]:
    (source / file).write_text(text, encoding="utf-8")
    return [line for line in check_tables.objections(source) if line.startswith(file)]


def test_names_are_those_of_rules_public_forms_and_composite_functions(source: Path) -> None:
    assert check_tables.declared_names(source) == {"add", "mul_scalar", "mul", "sum", "mean", "norm"}


@pytest.mark.parametrize(
    "text",
    [
        '_KNOWN = {"add", "mul", "sum", "mean", "norm"}\n',
        '_NODES = {"Add": 1, "Mul": 2, "SumBackward0": 3, "MulScalarBackward1": 4, "Norm": 5}\n',
        '_KNOWN = frozenset("add_ mul sum mean norm".split())\n',
        '_KNOWN: dict[str, int] = {"add": 1, "mul": 1, "sum": 1, "mean": 1, "norm": 2}\n',
        "_KNOWN = (F.add, F.mul, F.sum, F.mean, F.norm)\n",
        'def knows(name):\n    return name in ("add", "mul", "sum", "mean", "norm")\n',
        'class Known:\n    names = ["add", "mul", "sum", "mean", "norm"]\n',
    ],
)
def test_a_planted_table_is_refused(source: Path, text: str) -> None:
    (line,) = objections_to(source, text)
    assert "a table of 5 operations (" in line
    assert "declare the fact beside each of them" in line


def test_a_file_of_names_is_refused(source: Path) -> None:
    (line,) = objections_to(source, "add\nmul\nsum\nmean\nnorm\n", "names.txt")
    assert "names.txt:1: a table of 5 operations" in line


@pytest.mark.parametrize(
    "text",
    [
        '_KNOWN = {"add", "mul", "sum", "mean"}\n',
        '__all__ = ["add", "mul", "sum", "mean", "norm"]\n',
        '_TEXT = "Let mean and sum of a norm add up, and mul them."\n',
        '@serves("add mul sum mean norm")\ndef serve(input): ...\n',
        "def total(x):\n    return x.add(), x.mul(), x.sum(), x.mean(), x.norm()\n",
    ],
)
def test_other_words_are_accepted(source: Path, text: str) -> None:
    assert objections_to(source, text) == []


@pytest.mark.parametrize(("allowed", "message"), [(4, "may only shrink from 4"), (7, "5 names are left of 7")])
def test_a_debt_is_held_to_its_number(
    source: Path, monkeypatch: pytest.MonkeyPatch, allowed: int, message: str
) -> None:
    monkeypatch.setattr(check_tables, "DEBTS", {"module.py _KNOWN": allowed})
    (line,) = objections_to(source, '_KNOWN = {"add", "mul", "sum", "mean", "norm"}\n')
    assert message in line


def test_a_paid_debt_must_be_struck_off(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_tables, "DEBTS", {"module.py _KNOWN": 5})
    (line,) = objections_to(source, "")
    assert "0 names are left of 5" in line


def test_the_source_has_no_table_but_the_debts(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_tables.main([]) == 0, capsys.readouterr().err
