"""One tree, three languages: NumPy's text is run, C's and CUDA's are compiled, and the first two agree."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback import kernels
from pullback.expressions.c_printer import print_c, print_steps
from pullback.expressions.cuda_printer import PREAMBLE, Unprintable, print_cuda, print_cuda_steps
from pullback.expressions.functions import FUNCTIONS
from pullback.expressions.numpy_printer import print_numpy, print_numpy_function
from pullback.expressions.tree import MASK, NUMBER, Expr, Load, Number, Operation, Program, Select, Step

x, y, k = Load("x"), Load("y"), Load("k", NUMBER)
WORDS = {
    "exp_of": "expf", "log_of": "logf", "sqrt_of": "sqrtf", "tanh_of": "tanhf", "abs_of": "fabsf",
}  # fmt: skip
HEAD = (
    "#include <math.h>\n#include <stddef.h>\n#define REAL float\n"
    + "".join(f"#define {word} {function}\n" for word, function in WORDS.items())
    + "static REAL maximum_of(REAL a, REAL b) { return a != a || a > b ? a : b; }\n"
    + "static REAL minimum_of(REAL a, REAL b) { return a != a || a < b ? a : b; }\n"
)
COMPILER, NVCC = shutil.which("cc"), shutil.which("nvcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no compiler for CUDA")


def of(name: str, *arguments: Expr) -> Operation:
    return Operation(name, arguments)


def number(value: float) -> Expr:
    return of("real", Number(value))


GELU_LIKE = Program(
    (Step("inner", of("tanh", of("*", of("real", k), x))),),
    Select(Operation(">", (x, number(0)), MASK), of("*", x, of("+", Load("inner"), number(1))), of("exp", y)),
)


def run_numpy(text: str, name: str, *arguments: Any) -> Any:
    scope: dict[str, Any] = {"np": np, "F": kernels}
    exec(text, scope)
    return scope[name](*arguments)


def compile_c(tmp_path: Path, text: str) -> ctypes.CDLL:
    assert COMPILER is not None
    (tmp_path / "made.c").write_text(HEAD + text)
    library = tmp_path / "made.so"
    command = [COMPILER, "-O2", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(tmp_path / "made.c"), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def pointer(array: Any) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def test_numpy_computes_a_program_with_steps() -> None:
    text = print_numpy_function("f", ["x", "y", "k"], GELU_LIKE)
    a, b = np.linspace(-2, 2, 9, dtype=np.float32), np.linspace(0, 1, 9, dtype=np.float32)
    expected = np.where(a > 0, a * (np.tanh(0.5 * a) + 1), np.exp(b))
    np.testing.assert_allclose(run_numpy(text, "f", a, b, 0.5), expected, rtol=1e-6)


@needs_compiler
def test_c_computes_what_numpy_computes(tmp_path: Path) -> None:
    body = "\n".join(print_steps(GELU_LIKE)).replace("const REAL", "        const REAL")
    text = (
        "void f(REAL *out, const REAL *x_at, const REAL *y_at, double k, size_t count)\n{\n"
        "    for (size_t i = 0; i < count; i++) {\n        const REAL x = x_at[i], y = y_at[i];\n"
        f"{body}\n        out[i] = {print_c(GELU_LIKE.result)};\n    }}\n}}\n"
    )
    a, b = np.linspace(-2, 2, 9, dtype=np.float32), np.linspace(0, 1, 9, dtype=np.float32)
    actual = np.empty(9, np.float32)
    compile_c(tmp_path, text).f(pointer(actual), pointer(a), pointer(b), ctypes.c_double(0.5), ctypes.c_size_t(9))
    expected = run_numpy(print_numpy_function("f", ["x", "y", "k"], GELU_LIKE), "f", a, b, 0.5)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"remainder_from", "floor_quotient", "largest_like"}))
def test_every_function_has_a_word_in_numpy(name: str) -> None:
    two = {"at_least", "maximum", "minimum", "fmax", "fmin", "copysign", "logaddexp", "hypot", "atan2", "fmod"}
    arguments = (x, y) if name in two else (x,)
    a = np.array([0.25, 0.5], np.float32)
    text = print_numpy_function("f", ["x", "y"], Program((), Operation(name, arguments)))
    assert np.isfinite(run_numpy(text, "f", a, a + 1)).all()


@pytest.mark.parametrize(
    ("value", "expected"), [(1, "1"), (-2.5, "(-2.5)"), (float("inf"), "np.inf"), (float("nan"), "np.nan")]
)
def test_numbers_in_numpy(value: float, expected: str) -> None:
    assert print_numpy(number(value)) == expected


def test_a_remainder_has_the_sign_of_the_divisor() -> None:
    rest = Program((Step("rest", of("fmod", x, y)),), of("remainder_from", Load("rest"), y))
    a, b = np.array([5.0, -5.0, 5.0, -5.0]), np.array([3.0, 3.0, -3.0, -3.0])
    text = print_numpy_function("f", ["x", "y"], rest)
    assert run_numpy(text, "f", a, b).tolist() == np.remainder(a, b).tolist()


def test_cuda_names_its_own_functions() -> None:
    assert print_cuda(of("maximum", of("exp", x), of("neg", of("abs", y)))) == "maximum_of(exp(x), (-fabs(y)))"


def test_what_cuda_does_not_have_is_refused() -> None:
    with pytest.raises(Unprintable, match="digamma"):
        print_cuda(of("digamma", x))


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("real", ["float", "double"])
def test_printed_kernels_compile_for_cuda(tmp_path: Path, real: str) -> None:
    assert NVCC is not None
    one = [n for n in FUNCTIONS if n not in ("digamma", "at_least", "maximum", "minimum", "fmax", "fmin", "copysign", "logaddexp",
                                             "hypot", "atan2", "fmod", "remainder_from", "floor_quotient")]  # fmt: skip
    total: Expr = x
    for name in one:
        total = of("+", total, of(name, x))
    for name in (
        "at_least",
        "maximum",
        "minimum",
        "fmax",
        "copysign",
        "logaddexp",
        "hypot",
        "atan2",
        "fmod",
        "remainder_from",
    ):
        total = of("+", total, of(name, x, y))
    total = of("+", total, of("floor_quotient", x, y, x))
    text = f"#define REAL {real}\n" + PREAMBLE
    for name, program in (("steps", GELU_LIKE), ("everything", Program((), total))):
        body = [*print_cuda_steps(program), f"*out = {print_cuda(program.result)};"]
        text += f"__global__ void {name}(REAL *out, REAL x, REAL y, double k)\n{{\n{chr(10).join(body)}\n}}\n"
    (tmp_path / "made.cu").write_text(text)
    command = [NVCC, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "made.cubin"), str(tmp_path / "made.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
