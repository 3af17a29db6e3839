"""The renderer of elementwise expressions to C: what it reads out of Python text, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pullback.expressions.c_printer import print_c, print_steps
from pullback.expressions.python_sources import PythonSources
from pullback.expressions.ways import Unrenderable, Variant
from pullback.rules.model import Refusal
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from pullback.source_text import digest_of_syntax, digest_of_text
from tools.codegen import generator as command
from tools.codegen.emit_c import emit_elementwise
from tools.codegen.native_kernels import NativeKernel, find_native_kernels, render_kernel, render_line

HEAD = "import math\n\nimport numpy as np\nfrom pullback.native import native\nfrom pullback.typing import Array, Scalar\n\n"


def sources_of(tmp_path: Path, kernels: str, rules: str = "", formulas: str = "") -> PythonSources:
    for folder, text in (("kernels", HEAD + kernels), ("derivatives", rules), ("formulas", formulas), ("native", "")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sample.py").write_text(text)
    return PythonSources(tmp_path)


def render(tmp_path: Path, kernels: str, name: str = "f") -> NativeKernel:
    sources = sources_of(tmp_path, kernels)
    module = "pullback.kernels.sample"
    return render_kernel(sources, module, sources.modules[module].functions[name])


def result(variant: Variant) -> str | None:
    return None if variant.program is None else print_c(variant.program.result)


def results(kernel: NativeKernel) -> list[str | None]:
    return [result(variant) for variant in kernel.variants]


def steps(kernel: NativeKernel) -> list[str]:
    assert kernel.variants[0].program is not None
    return print_steps(kernel.variants[0].program)


def conditions(variant: Variant) -> tuple[str, ...]:
    return tuple(print_c(test) if truth else f"!({print_c(test)})" for test, truth in variant.conditions)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input * input + 1", "((input * input) + (REAL)1)"),
        ("1 / (1 + np.exp(-input))", "((REAL)1 / ((REAL)1 + exp_of((-input))))"),
        ("input * (math.sqrt(4) / 2)", "(input * (REAL)1.0)"),
        ("np.where(input > 0, input, 0)", "((input > (REAL)0) ? input : (REAL)0)"),
        ("np.maximum(input, 0)", "maximum_of(input, (REAL)0)"),
        ("np.clip(input, -1, np.inf)", "minimum_of(maximum_of(input, (REAL)(-1)), (REAL)INFINITY)"),
        ("input if input.dtype.kind == 'c' else -input", "(-input)"),
        ("np.sqrt(input) if input.size > 100 else np.abs(input)", "abs_of(input)"),
    ],
)
def test_an_expression_becomes_one_of_c(tmp_path: Path, expression: str, expected: str) -> None:
    kernel = render(tmp_path, f"def f(input: Array) -> Array:\n    return {expression}\n")
    assert results(kernel) == [expected]


def test_numbers_stay_double_until_they_meet_an_element(tmp_path: Path) -> None:
    kernel = render(tmp_path, "def f(input: Array, a: Scalar, b: Scalar) -> Array:\n    return input * (a * b)\n")
    assert results(kernel) == ["(input * (REAL)(a * b))"]


def test_a_value_used_twice_is_computed_once(tmp_path: Path) -> None:
    kernel = render(tmp_path, "def f(input: Array) -> Array:\n    e = np.exp(input)\n    return e / (1 + e)\n")
    assert steps(kernel) == ["const REAL e = exp_of(input);"]
    assert results(kernel) == ["(e / ((REAL)1 + e))"]


def test_a_test_on_an_argument_makes_variants(tmp_path: Path) -> None:
    text = (
        "def f(input: Array, mode: str = 'a', *, k: Scalar = 1) -> Array:\n"
        "    if mode == 'a':\n        return input if k == 1 else input * k\n"
        "    if mode == 'b':\n        return -input\n"
        "    raise ValueError(mode)\n"
    )
    kernel = render(tmp_path, text)
    found = {conditions(v): result(v) for v in kernel.variants}
    assert found == {
        ('!strcmp(mode, "a")', "k == 1.0"): None,  # the input itself: nothing is computed
        ('!strcmp(mode, "a")', "!(k == 1.0)"): "(input * (REAL)k)",
        ('!(!strcmp(mode, "a"))', '!strcmp(mode, "b")'): "(-input)",
        ('!(!strcmp(mode, "a"))', '!(!strcmp(mode, "b"))'): None,
    }


def test_functions_are_followed(tmp_path: Path) -> None:
    text = "def half(x: Array) -> Array:\n    return x / 2\n\ndef f(input: Array) -> Array:\n    return half(input + 1) + 1\n"
    kernel = render(tmp_path, text)
    assert steps(kernel) == ["const REAL x = (input + (REAL)1);"]
    assert results(kernel) == ["((x / (REAL)2) + (REAL)1)"]


def test_none_is_never_used_as_a_number(tmp_path: Path) -> None:
    kernel = render(tmp_path, "def f(input: Array, low: Scalar | None) -> Array:\n    return input + low\n")
    assert {conditions(v): result(v) for v in kernel.variants} == {
        ("absent(low)",): None,
        ("!(absent(low))",): "(input + (REAL)low)",
    }


def test_a_division_that_python_refuses_is_left_to_python(tmp_path: Path) -> None:
    kernel = render(tmp_path, "def f(input: Array, k: Scalar) -> Array:\n    return input * (1 / k)\n")
    assert {conditions(v): v.program is None for v in kernel.variants} == {
        ("k != 0",): False,
        ("!(k != 0)",): True,
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return np.arctan(input)", "np.arctan"),
        ("return input.sum()", ".sum()"),
        ("return input @ input", "MatMult"),
        ("return input if input > 0 else -input", "a test on the elements"),
        ("return input[0]", "input[0]"),
        ("return input.reshape(input.shape)", ".reshape()"),
        ("return sorted(input)", "the function sorted"),
    ],
)
def test_what_c_has_no_word_for_is_refused(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(Unrenderable) as caught:
        render(tmp_path, f"def f(input: Array) -> Array:\n    {body}\n")
    assert reason in str(caught.value)


def test_a_marked_kernel_that_cannot_be_rendered_is_refused_with_its_place(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, "@native\ndef f(input: Array) -> Array:\n    return np.sort(input)\n")
    refusals: list[Refusal] = []
    assert find_native_kernels(sources, [], tmp_path / "native", refusals) == []
    assert len(refusals) == 1
    assert "sample.py:8: f cannot be rendered to C (np.sort)" in str(refusals[0])


def test_a_marked_kernel_that_is_written_in_c_is_left_alone(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, "@native\ndef f(input: Array) -> Array:\n    return np.sort(input)\n")
    (tmp_path / "native" / "sorting.c").write_text('const KernelEntry sorting_kernels[] = {\n    {"f", f},\n};\n')
    refusals: list[Refusal] = []
    assert find_native_kernels(sources, [], tmp_path / "native", refusals) == []
    assert refusals == []


RULE = "@elementwise\ndef scale(grad, input, other):\n    return wrt(input=grad * F.conj(other), other=F.slope(grad, input))\n"


def test_lines_of_rules_are_rendered_through_formulas(tmp_path: Path) -> None:
    kernels = "def scale(input: Array, other: Array | Scalar) -> Array:\n    return input * other\n"
    formulas = "def slope(grad, input):\n    return grad * F.scale(input, 2)\n"
    sources = sources_of(tmp_path, kernels, RULE, formulas)
    (operation,) = read_rules(tmp_path / "derivatives", read_kernels(tmp_path / "kernels", []), [])
    rendered = [render_line(sources, operation, line) for line in operation.rule.lines]
    assert [kernel.name for kernel in rendered if kernel] == ["scale_grad_of_input", "scale_grad_of_other"]
    assert [results(kernel) for kernel in rendered if kernel] == [["(grad * other)"], ["(grad * (input * (REAL)2))"]]


def test_equal_loops_are_written_once(tmp_path: Path) -> None:
    text = "def f(input: Array, other: Array) -> Array:\n    return input * other\n\n"
    text += "def g(first: Array, second: Array) -> Array:\n    return first * second\n"
    sources = sources_of(tmp_path, text)
    module = "pullback.kernels.sample"
    made = [render_kernel(sources, module, sources.modules[module].functions[name]) for name in ("f", "g")]
    loops, tables = emit_elementwise(made)
    assert loops.count("MULTIVERSIONED") == 1
    assert tables.count("loop_f_float32") == 3  # declared once, used by both
    assert '{"g", .elementwise = &description_of_g, .in_order = 1}' in tables


def test_angles_beyond_the_reduction_go_to_libm(tmp_path: Path) -> None:
    loops, _ = emit_elementwise([render(tmp_path, "def f(input: Array) -> Array:\n    return np.sin(input * 2)\n")])
    assert "beyond |= abs_of(angle) > (REAL)LARGEST_ANGLE;" in loops
    assert "libm_sin_of(angle)" in loops


def test_rendered_c_is_written_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "render_c", lambda: ({"loops.h": "new\n", "tables.c": "same\n"}, []))
    for name in ("loops.h", "tables.c"):
        (tmp_path / name).write_text("same\n")
        os.utime(tmp_path / name, (1, 1))
    assert command.main(["--c", str(tmp_path)]) == 0
    assert (tmp_path / "loops.h").read_text() == "new\n"
    assert (tmp_path / "tables.c").stat().st_mtime == 1


def test_digests_are_of_every_file_that_was_read(tmp_path: Path) -> None:
    text = "from pullback.kernels.other import g\n\n@native\ndef f(input: Array) -> Array:\n    return g(input)\n"
    sources = sources_of(tmp_path, text)
    other = tmp_path / "kernels" / "other.py"
    other.write_text("def g(input):\n    return np.exp(input)\n")
    (tmp_path / "kernels" / "unread.py").write_text("def h(input):\n    return input\n")
    sources = PythonSources(tmp_path)
    module = "pullback.kernels.sample"
    render_kernel(sources, module, sources.modules[module].functions["f"])
    assert sources.followed == {"pullback.kernels.other"}
    assert [found.name for _, found in sources.marked()] == ["f"]
    assert sources.followed == {module, "pullback.kernels.other"}
    row = command.emit_digests(tmp_path, [other]).splitlines()[-1]
    assert (
        row == f'    "kernels/other.py {digest_of_text(other.read_bytes())} {digest_of_syntax(other.read_bytes())}\\n"'
    )
