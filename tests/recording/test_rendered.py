"""Rules rendered when they are first asked for: all of them compile, and tracebacks show their lines."""

from __future__ import annotations

import inspect
import linecache
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback
from pullback.formulas import along_dim
from pullback.generated.registry import OPERATIONS
from pullback.recording import array_formulas
from pullback.recording.rendered import _rule_in_float32, differentiable_rule, tangent_of

DIFFERENTIABLE = sorted(name for name, operation in OPERATIONS.items() if operation.differentiable_inputs)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_rule_can_be_rendered(name: str) -> None:
    for function in (differentiable_rule(name), _rule_in_float32(name), tangent_of(name)):
        file = inspect.unwrap(function).__code__.co_filename
        assert f"{name}>" in file or f"{name} " in file
        assert linecache.getline(file, 1).startswith(f"def {function.__name__}(")


def test_a_traceback_shows_the_line_of_a_rule_on_tensors() -> None:
    x = pullback.ones(3, requires_grad=True)
    y = x.sin()
    with pytest.raises(TypeError) as caught:
        y.grad_fn.apply_differentiable((None,), y.grad_fn.next_edges)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.name, frame.line) == ("sin_on_tensors", "return (grad * conjugate(F.cos(input)),)")


def test_threads_may_ask_for_rules_at_the_same_time() -> None:
    names = [name for name in DIFFERENTIABLE if OPERATIONS[name].family == "special"] * 4
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(tangent_of, names))
    assert made == [tangent_of(name) for name in names]


def test_a_formula_on_arrays_is_the_text_of_formulas() -> None:
    from pullback import formulas  # noqa: F401  (the package that the file belongs to)
    from pullback.formulas import trigonometric

    on_arrays = array_formulas.acosh_slope
    assert on_arrays is not trigonometric.acosh_slope
    assert on_arrays.__code__.co_filename == trigonometric.acosh_slope.__code__.co_filename
    assert on_arrays.__globals__["F"] is array_formulas


def test_an_unknown_formula_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="no kernel and no formula is named nothing_such"):
        array_formulas.nothing_such


def test_a_marked_formula_is_the_reference_of_the_compiled_kernel_of_its_name() -> None:
    grad, places = np.ones((1, 2), np.float32), np.array([[1, 0]])
    expected = np.array([[1, 1, 0]], np.float32)
    on_arrays = array_formulas.put_along
    np.testing.assert_array_equal(on_arrays(grad, places, (1, 3), 1), expected)
    np.testing.assert_array_equal(on_arrays.__wrapped__(grad, places, (1, 3), 1), expected)
    assert on_arrays.__wrapped__.__globals__["F"] is array_formulas
    assert along_dim.put_along.__globals__["F"] is pullback.generated  # on Tensors it is the formula


def test_importing_pullback_reads_no_rule() -> None:
    program = (
        "import sys, pullback as p; x = p.ones(2, requires_grad=True); (x * x).sin().sum().backward(); "
        "print([m for m in sys.modules if m.startswith(('pullback.rules', 'pullback.derivatives')) or "
        "m == 'pullback.generated.registry'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
