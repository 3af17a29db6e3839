"""The generator: what it reads, what it saves, what it refuses and how it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback.rules.model import Operation, Refusal
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from pullback.rules.saved_values import SavedValues, is_fresh
from tools.codegen.generator import main

KERNELS = """
from pullback.typing import Array, Dim, Scalar

def scale(input: Array, other: Array | Scalar, *, alpha: float = 1.0) -> Array:
    return input * other

def pick(input: Array, dim: Dim, index: Array) -> tuple[Array, ...]:
    return input, index
"""


def read(tmp_path: Path, rules: str, kernels: str = KERNELS) -> tuple[list[Operation], list[Refusal]]:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "derivatives").mkdir()
    (tmp_path / "kernels" / "sample.py").write_text(kernels)
    (tmp_path / "derivatives" / "sample.py").write_text(rules)
    refusals: list[Refusal] = []
    found = read_kernels(tmp_path / "kernels", refusals)
    return read_rules(tmp_path / "derivatives", found, refusals), refusals


def test_a_signature_is_the_schema(tmp_path: Path) -> None:
    (operation,), refusals = read(
        tmp_path, "@elementwise(in_place=True)\ndef scale(grad, input, other):\n    return wrt(input=grad * other)\n"
    )
    assert refusals == []
    assert [(p.name, p.role, p.default) for p in operation.kernel.parameters] == [
        ("input", "tensor", None),
        ("other", "tensor or number", None),
        ("alpha", "plain", "1.0"),
    ]
    assert operation.rule.in_place
    assert operation.rule.node_name == "ScaleBackward0"


def test_what_a_line_reads_is_saved_for_that_line(tmp_path: Path) -> None:
    (operation,), _ = read(
        tmp_path,
        "@elementwise\ndef scale(grad, input, other, alpha):\n"
        "    return wrt(input=grad * other, other=F.sum_to(grad * input, other.shape) * alpha)\n",
    )
    saved = SavedValues(operation)
    assert saved.tensors() == ["input", "other"]
    assert saved.readers("other") == ["input"]
    assert saved.readers("input") == ["other"]
    assert saved.attributes() == [("other", "shape")]
    assert saved.plain() == ["alpha"]


def test_a_computed_line_is_fresh_and_a_passed_gradient_is_not(tmp_path: Path) -> None:
    (operation,), _ = read(
        tmp_path, "@elementwise\ndef scale(grad, input, other):\n    return wrt(input=grad * other, other=grad)\n"
    )
    assert [is_fresh(line, operation.rule) for line in operation.rule.lines] == [True, False]


@pytest.mark.parametrize(
    ("rule", "line", "message"),
    [
        ("@elementwise\ndef missing(grad, input):\n    return wrt(input=grad)\n", 2, "no kernel named missing: write it in"),
        ("def scale(grad, input):\n    return wrt(input=grad)\n", 1, "needs one kind"),
        ("@wonderful\ndef scale(grad, input):\n    return wrt(input=grad)\n", 2, "is not a kind: one of elementwise"),
        ("@elementwise(fast=True)\ndef scale(grad, input):\n    return wrt(input=grad)\n", 1, "unknown option fast"),
        ("@elementwise\ndef scale(grad, inputs):\n    return wrt(input=grad)\n", 2, "has no parameter inputs: it has input, other"),
        ("@elementwise\ndef scale(grad, input):\n    return grad\n", 3, "a rule returns wrt(input=..., ...)"),
        ("@elementwise\ndef scale(grad, input):\n    return wrt(alpha=grad)\n", 3, "has no such tensor"),
        ("@elementwise\ndef scale(grad, input):\n    return wrt(input=grad * offset)\n", 3, "offset is not a parameter"),
        ("@elementwise\ndef scale(grad, input):\n    return wrt(input=[g for g in grad])\n", 3, "ListComp is not part of the rule language: move it"),
        ("@elementwise\ndef scale(grad, input):\n    return wrt(input=grad.cos())\n", 3, "write F.cos(...) for an operation"),
        ("@elementwise\ndef scale(grad, input):\n    input = grad\n    return wrt(input=input)\n", 3, "assigned twice or hides a parameter"),
        ("@elementwise\ndef scale(grad, input, *, outcome):\n    return wrt(input=grad)\n", 2, "outcome is not an output of scale"),
        ("@tangent\ndef scale_tangent(input, input_tangent):\n    return input_tangent\n", 2, "no rule scale above this tangent"),
    ],
)  # fmt: skip
def test_a_bad_rule_is_refused_with_file_line_and_remedy(tmp_path: Path, rule: str, line: int, message: str) -> None:
    _, (refusal,) = read(tmp_path, rule)
    assert str(refusal).startswith(f"{tmp_path / 'derivatives' / 'sample.py'}:{line}: ")
    assert message in str(refusal)


def test_two_kernels_of_one_name_are_refused(tmp_path: Path) -> None:
    _, (refusal,) = read(tmp_path, "", KERNELS + "\ndef scale(input: Array) -> Array: ...\n")
    assert "kernel scale is already defined in" in str(refusal)


def test_the_committed_code_is_what_the_generator_writes() -> None:
    assert main(["--check"]) == 0
