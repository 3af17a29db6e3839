"""Wrong calls raise what PyTorch raises: the type, and the words that were recorded. See record.py."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

import numpy as np
import pytest

import pullback
from tests.cases import each_case, named

from .outcomes import EXPECTED, is_of_type, outcome, read_calls, words_of
from .wrong_calls import is_compiled

X = pullback.ones(2)
ROWS = [tuple(line.split("\t")) for line in EXPECTED.read_text(encoding="utf-8").splitlines()]

# Arguments are counted before any code of ours runs, with the tensor of a method among them; Cython has words of its own.
COUNTED = re.compile(
    r"[\w.]+\(\) takes (\d+ positional arguments? but \d+ were given|"
    r"(exactly|at least|at most) \d+ positional arguments? \(\d+ given\))"
)


@cache
def preparations() -> dict[str, str]:
    """What runs before the calls of each file."""
    return {file: before for file, before, _ in read_calls()}


@each_case(named("row", ROWS, lambda row: row[1]))
def test_a_wrong_call_raises_what_pytorch_raises(row: tuple[str, str, str, str]) -> None:
    file, call, expected, phrase = row
    actual = outcome(pullback, preparations()[file], call)

    assert is_of_type(actual, expected), repr(actual)
    if call.startswith("torch.") and is_compiled(call):
        return
    if not ("positional" in phrase and COUNTED.fullmatch(str(actual))):
        # What is wrong with one argument stands below the signatures, where PyTorch may have no room for both.
        assert any(phrase in " ".join(words_of(actual, last=last)) for last in (False, True))


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        (lambda: pullback.tensor([300], dtype=pullback.uint8), RuntimeError, "to type uint8 without overflow"),
        (lambda: X.expand(-2), RuntimeError, r"\(-2\) must match the existing size \(2\)"),
        (lambda: pullback.device("float32"), RuntimeError, "Invalid device string: 'float32'"),
        (lambda: pullback.device("cuda:01"), RuntimeError, "Invalid device string: 'cuda:01'"),
        (lambda: pullback.device(""), RuntimeError, "Device string must not be empty"),
        (lambda: X.masked_fill(X, 0), RuntimeError, "mask with dtype float$"),
        (lambda: X.masked_scatter(X, X), RuntimeError, "mask with dtype Float$"),
        (lambda: pullback.where(X, 1, 2), RuntimeError, "a tensor with dtype Float: "),
        (lambda: pullback.rand(2, cast("Any", "a")), TypeError, r"rand\(\): argument 'size' failed to unpack"),
        (lambda: pullback.randn(2, dtype=pullback.int32), NotImplementedError, "not implemented for 'Int'"),
        (lambda: pullback.add(X, cast("Any", np.ones(2))), TypeError, "must be Tensor, not numpy.ndarray"),
        (lambda: pullback.from_numpy(np.array(["a"])), TypeError, "of type numpy.str_. The only supported"),
        (lambda: pullback.from_numpy(np.arange(4, dtype=">i4")), ValueError, "byte order different from the native"),
        (lambda: pullback.from_numpy(cast("Any", np.float64(2))), TypeError, r"\(got numpy.float64\)"),
    ],
)
def test_values_types_and_names_are_called_as_in_pytorch(call: Any, kind: type[Exception], phrase: str) -> None:
    with pytest.raises(kind, match=phrase):
        call()
