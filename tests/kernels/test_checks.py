"""Arguments are checked before a kernel, by a function of its name that reads shapes and dtypes alone."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import checks
from pullback.checks import check_of, checked, elements, is_checked
from pullback.checks.shapes import can_view
from pullback.kernels.namespace import FILES
from pullback.nn import functional as F
from tools.size_report import kernel_raises

KERNELS = Path(checks.__file__).parents[1] / "kernels"


def with_checks() -> dict[str, str]:
    """The functions of checks/ whose file has the name of a file of kernels, with that name."""
    return {
        statement.name: path.stem
        for path in sorted(Path(checks.__file__).parent.glob("*.py"))
        if path.name != "__init__.py" and (KERNELS / path.name).exists()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.FunctionDef) and statement.name[0] != "_"
    }


def without_elements(*shape: int, dtype: Any = np.float32) -> Any:
    """What a check may look at of an array."""
    return SimpleNamespace(shape=shape, ndim=len(shape), size=int(np.prod(shape)), dtype=np.dtype(dtype))


@pytest.mark.parametrize(("name", "family"), with_checks().items())
def test_a_check_takes_what_its_kernel_takes(name: str, family: str) -> None:
    kernel = getattr(import_module(f"pullback.kernels.{family}"), name)
    check = getattr(import_module(f"pullback.checks.{family}"), name)
    assert list(inspect.signature(check).parameters.values()) == list(inspect.signature(kernel).parameters.values())


def test_every_check_belongs_to_a_kernel() -> None:
    kernels = {name: file for file, names in FILES.items() for name in names.split()}
    assert [name for name, family in with_checks().items() if kernels.get(name) != family] == []


def test_kernels_raise_only_for_what_elements_tell() -> None:
    reasons = {
        name for name, value in vars(elements).items() if getattr(value, "__module__", None) == elements.__name__
    }
    assert [(file, name) for file, name in kernel_raises(KERNELS.parent) if name not in reasons] == []


@pytest.mark.parametrize("seed", range(200))
def test_a_shape_can_be_viewed_where_numpy_does_not_copy(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    dims = int(numbers.integers(1, 4))
    base = np.zeros([int(size) for size in numbers.integers(1, 7, dims)])
    array = base.transpose(numbers.permutation(dims))
    if seed % 3 == 0:
        array = array[..., ::2]
    if seed % 5 == 0:
        array = np.broadcast_to(array, (2, *array.shape))
    divisors = [n for n in range(1, array.size + 1) if array.size % n == 0]
    first = int(numbers.choice(divisors))
    second = int(numbers.choice([n for n in divisors if (array.size // first) % n == 0]))
    wanted = (first, second, array.size // first // second)
    assert can_view(array.shape, array.strides, wanted) == np.may_share_memory(array, array.reshape(wanted))


def test_a_kernel_that_fails_is_explained_by_its_check() -> None:
    with pytest.raises(RuntimeError, match="pixel_shuffle expects a positive upscale_factor, but got 0"):
        pullback.pixel_shuffle(pullback.ones(4, 2, 2), 0)
    with pytest.raises(RuntimeError, match="channel_shuffle expects input with > 2 dims"):
        pullback.channel_shuffle(pullback.ones(4, 2, device="meta"), 2)


@pytest.mark.parametrize(
    ("family", "name", "arguments", "message"),
    [
        ("activation", "mish", (without_elements(2, dtype=np.int64),), "\"mish_cpu\" not implemented for 'Long'"),
        ("matrix_products", "bmm", (without_elements(2, 2), without_elements(2, 2, 2)), "batch1 must be a 3D tensor"),
        (
            "matrix_products",
            "matmul_batched",
            (without_elements(2, 2, 3), without_elements(3, 3, 2)),
            r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 0",
        ),
        ("sorting", "topk", (without_elements(3), 4, 0), "selected index k out of range"),
        ("decompositions", "linalg_qr", (without_elements(3),), "must have at least 2 dimensions"),
        (
            "solvers",
            "linalg_solve_ex",
            (without_elements(3, 3), without_elements(4, 1)),
            "Incompatible shapes of A and B",
        ),
    ],
)
def test_a_check_reads_no_elements(family: str, name: str, arguments: tuple[Any, ...], message: str) -> None:
    check = getattr(import_module(f"pullback.checks.{family}"), name)
    with pytest.raises(RuntimeError, match=message):
        check(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pullback.linalg.vector_norm(pullback.zeros(0, 3), -3.0, dim=0),
            "cannot compute the -3 norm on the dim",
        ),
        (lambda: pullback.zeros(0, 3).norm(float("inf")), "cannot compute the inf norm on an empty tensor"),
        (lambda: pullback.histc(pullback.ones(3) / 0, 3), r"torch.histc: range of \[inf, inf\] is not finite"),
        (lambda: pullback.arange(6).reshape(2, 3).softmax(0), "\"softmax_kernel_impl\" not implemented for 'Long'"),
        (lambda: pullback.arange(6).reshape(2, 3).softmax(1), '"softmax_lastdim_kernel_impl" not implemented'),
        (lambda: F.gelu(pullback.arange(3), approximate="x"), "approximate argument must be either none or tanh"),
        (lambda: F.gelu(pullback.ones(3), approximate="x"), "approximate argument must be either none or tanh"),
        (lambda: F.softshrink(pullback.ones(3), -1.0), "lambda must be in range .* but found -1"),
        (lambda: pullback.signbit(pullback.ones(3) * 1j), "signbit is not implemented for complex tensors"),
        (lambda: -(pullback.ones(3, device="meta") > 0), "Negation, the `-` operator, on a bool tensor"),
    ],
)
def test_wrong_arguments_are_refused_in_the_words_of_pytorch(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):  # NotImplementedError is one
        call()


def test_a_norm_over_a_full_dimension_of_an_empty_tensor_is_empty() -> None:
    assert pullback.linalg.vector_norm(pullback.zeros(0, 3), float("inf"), dim=1).shape == (0,)


def test_a_kernel_is_called_with_checked_arguments_alone() -> None:
    calls = []

    def mish(input: Any) -> str:
        calls.append(input)
        return "computed"

    mish.__module__ = "pullback.kernels.activation"
    kernel = checked(mish)
    assert is_checked(kernel)
    assert not is_checked(mish)
    assert check_of(kernel) is check_of(mish)
    assert kernel(without_elements(2)) == "computed"
    with pytest.raises(NotImplementedError):
        kernel(without_elements(2, dtype=np.int64))
    assert len(calls) == 1
