"""Where users find a name follows from what is declared of it, of its first name or of its operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback import facts
from pullback.rules.model import Operation
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from tools.codegen.generator import SOURCE
from tools.codegen.public_names import PublicNames
from tools.codegen.read_facts import read_aliases

FUNCTIONS = ["method_cpu", "public_where", "arccos", "helper"]


@pytest.fixture(scope="module")
def operations() -> list[Operation]:
    wanted = ("acos", "add", "digamma")
    found = read_rules(SOURCE / "derivatives", read_kernels(SOURCE / "kernels", []), [])
    return [operation for operation in found if operation.name in wanted]


def names(place: str, operations: list[Operation]) -> list[str]:
    given: dict[str, dict[facts.Value, str]] = {
        "found": {"torch and method": "acos add digamma", "torch": "eye"},
        "found_in_place": {"method": "digamma"},
    }
    return PublicNames(given, {"acos": "arccos"}, operations).found(place, FUNCTIONS)


def test_the_in_place_form_of_one_tensor_is_found_in_torch_too(operations: list[Operation]) -> None:
    assert names("torch", operations) == ["acos", "acos_", "add", "arccos", "digamma", "eye", "where"]


def test_in_place_forms_are_methods_where_their_operations_are(operations: list[Operation]) -> None:
    expected = ["acos", "acos_", "add", "add_", "arccos", "cpu", "digamma", "digamma_"]
    assert names("method", operations) == expected


def test_a_second_name_with_a_declaration_is_an_alias_still(tmp_path: Path) -> None:
    (tmp_path / "family.py").write_text('absolute_ = declare(found="method")(abs_)\n', encoding="utf-8")
    assert read_aliases(tmp_path) == {"abs_": "absolute_"}
