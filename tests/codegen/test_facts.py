"""Facts are read where operations are declared, once each, and asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback import facts
from pullback.rules.model import Refusal
from tools.codegen.generator import SOURCE
from tools.codegen.read_facts import read_facts


def reading(folder: Path, **files: str) -> tuple[dict[str, dict[facts.Value, str]], list[str]]:
    for name, text in files.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "family.py").write_text(text, encoding="utf-8")
    refusals: list[Refusal] = []
    return read_facts(folder, refusals), [str(refusal) for refusal in refusals]


def test_facts_stand_in_rules_and_above_functions(tmp_path: Path) -> None:
    found, refusals = reading(
        tmp_path,
        derivatives='@general(in_place=True, autocast="lower")\ndef mm(grad, input): ...\n',
        functions='@interceptable\n@declare(autocast="lower")\ndef conv_tbc(input): ...\n',
        kernels='@declare(autocast="float32")\ndef stft(input): ...\n',
    )
    assert refusals == []
    assert found["autocast"] == {"float32": "stft", "lower": "conv_tbc mm"}


def test_an_unknown_fact_is_refused(tmp_path: Path) -> None:
    _, (refusal,) = reading(tmp_path, functions='@declare(autocasts="lower")\ndef conv_tbc(input): ...\n')
    assert "family.py:1: unknown fact autocasts: one of again, asks, autocast," in refusal


def test_a_fact_declared_twice_is_refused(tmp_path: Path) -> None:
    _, (refusal,) = reading(
        tmp_path,
        derivatives='@general(autocast="lower")\ndef mm(grad, input): ...\n',
        functions='@declare(autocast="float32")\ndef mm(input): ...\n',
    )
    assert "autocast of mm is already declared in derivatives/family.py" in refusal


def test_the_generators_facts_hold_inside_of_its_block_alone() -> None:
    with facts.facts_from({"autocast": {"float32": "mm"}}):
        assert facts.fact_of("mm", "autocast") == "float32"
    assert facts.fact_of("mm", "autocast") == "lower"


def test_a_question_about_an_unknown_fact_raises() -> None:
    with pytest.raises(KeyError, match="'autocasts' is not a fact"):
        facts.fact_of("mm", "autocasts")


def test_every_fact_is_declared_of_something() -> None:
    found = read_facts(SOURCE, [])
    assert [fact for fact, values in found.items() if not values] == []
