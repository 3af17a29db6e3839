"""Kernels along a dimension, read from their NumPy text and printed in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback.expressions.python_sources import PythonSources
from pullback.expressions.ways import Unrenderable
from tools.codegen.emit_rows import RowKernel, is_of_rows, render_rows

HEAD = "import numpy as np\nfrom pullback.native import native\n\n\n@native\n"


def render(folder: Path, text: str) -> RowKernel:
    for name in ("kernels", "formulas", "derivatives"):
        (folder / name).mkdir()
    (folder / "kernels" / "some.py").write_text(HEAD + text)
    sources = PythonSources(folder)
    [(module, function)] = sources.marked()
    assert is_of_rows(function)
    return render_rows(sources, module, function)


def test_what_a_row_is_divided_by_is_multiplied_with(tmp_path: Path) -> None:
    text = "def f(input: Array, dim: Dim) -> Array:\n    return input / accurate_sum(input, (dim,), True)\n"
    kernel = render(tmp_path, text)
    assert (kernel.takes, kernel.gives) == ("ed", "e")
    assert "out_at[j] = (input * inverse_of_sum);" in kernel.text


def test_a_number_of_the_row_is_a_result(tmp_path: Path) -> None:
    text = "def f(input: Array, dim: Dims, keepdim: bool) -> Array:\n    return accurate_sum(input, dim, keepdim) * 2\n"
    kernel = render(tmp_path, text)
    assert (kernel.takes, kernel.gives) == ("eDk", "w")


def test_ways_that_differ_after_the_loop_share_it(tmp_path: Path) -> None:
    kernel = render(
        tmp_path,
        "def f(input: Array, reduction: int = 1) -> Array:\n"
        "    values = input * input\n"
        "    if reduction == 0:\n"
        "        return values\n"
        "    total = accurate_sum(values, None, False)\n"
        "    return total if reduction == 2 else np.true_divide(total, values.size)\n",
    )
    assert (kernel.takes, kernel.gives) == ("e2", "ew")
    assert kernel.text.count("ROW_LOOP_WHOLE(") == 1
    assert kernel.text.count("_finish)(RowLoop *loop") == 2


def test_what_must_hold_for_all_elements_is_looked_at_in_the_loop(tmp_path: Path) -> None:
    kernel = render(
        tmp_path,
        "def f(input: Array, dim: Dim) -> Array:\n"
        "    if not np.all(input >= 0):\n"
        "        raise RuntimeError\n"
        "    return input / accurate_sum(input, (dim,), True)\n",
    )
    assert "unfit_lanes[j] += (input >= (REAL)0) ? 0 : 1;" in kernel.text


def test_a_maximum_that_a_nan_must_win_is_refused(tmp_path: Path) -> None:
    text = "def f(input: Array, dim: Dim) -> Array:\n    return input - largest_along(input, dim)\n"
    with pytest.raises(Unrenderable, match="NaN"):
        render(tmp_path, text)


def test_a_number_that_a_test_chooses_parts_no_ways(tmp_path: Path) -> None:
    kernel = render(
        tmp_path,
        "def f(input: Array, dim: Dims, correction: float, keepdim: bool) -> Array:\n"
        "    freedom = reduced_count(input, dim) - correction\n"
        "    factor = 2 / freedom if freedom else np.nan\n"
        "    return input * factor * add_up(input, dim, True)\n",
    )
    assert kernel.text.count("ROW_LOOP(") == 1
    assert "(row_size - correction) != 0 ? (2.0 / (row_size - correction)) : NAN" in kernel.text


def test_an_argument_is_not_two_numbers_at_once(tmp_path: Path) -> None:
    kernel = render(
        tmp_path,
        "def f(grad: Array, input: Array, reduction: int) -> Array:\n"
        "    weight = np.true_divide(grad, input.size) if reduction == 1 else grad\n"
        "    return weight * input\n",
    )
    assert kernel.takes == "se2"
    assert kernel.text.count("ROW_LOOP_PLAIN(") == 3  # one for each; for all, with the mean and with the sum
