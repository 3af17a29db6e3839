"""Steps of optimizers rendered to C: what statements that work in place become."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.test_c_expressions import sources_of
from tools.codegen.emit_steps import emit_steps

STEP = "@native\n@for_rows\ndef f_step(param: Array, grad: Array, state: Array | None = None, *, lr: float) -> None:\n"


def body(tmp_path: Path, statements: str, helpers: str = "") -> list[str]:
    """What the first loop computes, line by line."""
    lines = "".join(f"    {line}\n" for line in statements.split("; "))
    text = emit_steps(sources_of(tmp_path, helpers + STEP + lines))
    loop = text.split("i++) {\n", 1)[1].split("    }\n", 1)[0]
    return [line.strip() for line in loop.splitlines()]


def test_an_array_is_read_once_and_written_once(tmp_path: Path) -> None:
    assert body(tmp_path, "param *= lr; param -= grad") == [
        "const REAL param = param_at[i];",
        "const REAL grad = grad_at[i];",
        "const REAL param_2 = (param * (REAL)lr);",
        "const REAL param_3 = (param_2 - grad);",
        "param_at[i] = param_3;",
    ]


def test_a_second_name_means_the_same_array(tmp_path: Path) -> None:
    assert body(tmp_path, "same = param; same += grad; param *= lr")[-1] == "param_at[i] = param_2;"


def test_a_function_writes_into_what_it_is_given(tmp_path: Path) -> None:
    helper = "def halve(array: Array) -> None:\n    array *= 0.5\n\n"
    assert "param_at[i] = array;" in body(tmp_path, "halve(param); work = param * lr", helper)


def test_out_and_copyto_write(tmp_path: Path) -> None:
    made = body(tmp_path, "work = param * lr; np.sqrt(work, out=work); np.copyto(param, work, where=grad > 0)")
    assert made[-3:] == [
        "const REAL made = sqrt_of(work);",
        "const REAL made_2 = ((grad > (REAL)0) ? made : param);",
        "param_at[i] = made_2;",
    ]


def test_ways_are_chosen_by_numbers_and_by_what_a_row_lacks(tmp_path: Path) -> None:
    lines = "    if lr != 0:\n        param -= grad * lr\n    if state is not None:\n        state += grad\n"
    text = emit_steps(sources_of(tmp_path, STEP + lines))
    assert "if (lr != 0.0 && !step->arrays[2])" in text
    assert text.count("MULTIVERSIONED") == 4
    assert "STEP(f_step, 2, 3, 1)" in text


def test_what_has_no_word_in_c_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"f_step cannot be rendered to C \(.linalg\)"):
        emit_steps(sources_of(tmp_path, STEP + "    param -= np.linalg.inv(grad)\n"))
