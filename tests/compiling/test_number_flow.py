"""Where numbers and sizes go that are followed: code that tries to read them without asking gets what eager gives."""

from __future__ import annotations

import array
import decimal
import itertools
import math
import statistics
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling import backend

TABLE = [1.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0]
FORM, HALF, FIVE, TUPLE, PAIR = "%d", 0.5, 5.0, (5.0,), (5.0, 2)
WHOLE = [3, 4, 4, 4, 9, 2, 5, 0, 1, -4, 5, 11, 3, 8]
SIZES = [3, 3, 3, 9, 9, 7, 8, 4, 5, 5, 6]


@pytest.fixture(autouse=True)
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs run as lists of kernels, which takes no time to make."""
    monkeypatch.setattr(backend, "find_compiler", lambda: None)
    monkeypatch.setattr(backend, "_tell_of_no_compiler", lambda: None)


def compare(function: Any, values: list[Any], make: Any = None) -> Any:
    """Each call gives what eager execution gives; gives the compiled function."""
    compiled = pullback.compile(function)
    for value in values:
        seen = []
        for run in (function, compiled):
            x = pullback.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True) if make is None else make(value)
            try:
                result = run(x, value) if make is None else run(x)
            except Exception as error:
                seen.append([type(error)])
                continue
            tensor, *others = result if isinstance(result, tuple) else (result,)
            if tensor.requires_grad:
                tensor.sum().backward()
            seen.append([tensor.detach(), x.grad, *others, *map(type, others)])
        for expected, actual in zip(*seen, strict=True):
            if isinstance(expected, pullback.Tensor):
                pullback.testing.assert_close(actual, expected)
            else:
                assert actual == expected
    return compiled


def helper(x: Any, n: int) -> Any:
    return x * n + 1


def looked_up(x: Any, n: int) -> Any:
    return x * TABLE[n]


def counting_down(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 1.5
    return x


class Scaled(nn.Module):
    def forward(self, x: Any, n: int) -> Any:
        return x * n


SCALED = Scaled()
FOLLOWED: list[Any] = [
    lambda x, n: x * n, lambda x, n: (n * x - n) / (n * n + 1), lambda x, n: x**n, lambda x, n: pullback.add(x, n, alpha=n),
    lambda x, n: x.mul(n).sub(n), lambda x, n: pullback.where(x > n, x, x * 2), lambda x, n: x * 2 if n % 2 == 0 else x * n,
    lambda x, n: (x * n, n, n + 1, n / 2), lambda x, n: helper(x, n), lambda x, n: SCALED(x, n), lambda x, n: x * max(n, 4),
    lambda x, n: x * (n, 2)[0], lambda x, n: x * n if isinstance(n, int) else x, lambda x, n: x * -n,
]  # fmt: skip


@pytest.mark.parametrize("function", FOLLOWED)
def test_whole_number_in_arithmetic_is_an_input_of_the_program(function: Any) -> None:
    compiled = compare(function, WHOLE)
    assert len(compiled.kinds) == 1
    assert compiled.runs >= 8


READ: list[Any] = [
    lambda x, n: x * x[n % 4], lambda x, n: x[:n], lambda x, n: x * TABLE[n], looked_up, lambda x, n: looked_up(x, n),
    counting_down, lambda x, n: x * len(range(n)), lambda x, n: x.reshape(2, 2).sum(n % 2), lambda x, n: x.roll(n),
    lambda x, n: x * len(f"{n}"), lambda x, n: x * len(FORM % n), lambda x, n: x * math.exp(n), lambda x, n: x * len([0] * n),
    lambda x, n: x * len(bytes(abs(n))), lambda x, n: x * {3: 1.0}.get(n, 2.0), lambda x, n: x * (2 if abs(n) in b"\x05" else 1),
    lambda x, n: x * (2 if type(n) is int else 1), lambda x, n: x * n.real, lambda x, n: (lambda: x * TABLE[n])(),
    lambda x, n: x * 2 if HALF * n == 2.5 else x,
    lambda x, n: x * 2 if FIVE < n else x, lambda x, n: x * 2 if TUPLE == (n,) else x,  # noqa: SIM300  # the left one reads
    lambda x, n: x * 2 if max(n, 4.5) == 4.5 else x, lambda x, n: x * 2 if sum([0.5, n]) == 5.5 else x,
    lambda x, n: x * sum(itertools.islice(TABLE, abs(n))), lambda x, n: pullback.zeros(abs(n) + 1) + x[0],
]  # fmt: skip


@pytest.mark.parametrize("function", READ)
def test_whole_number_whose_value_python_uses_is_told_apart_by_it(function: Any) -> None:
    compiled = compare(function, WHOLE)
    assert len(compiled.kinds) == len(set(WHOLE))


def test_whole_number_of_a_tensor_of_whole_numbers_wraps_around_as_eager_does() -> None:
    compiled = pullback.compile(lambda x, n: x * n + n)
    x = pullback.tensor([1, 2, 3], dtype=pullback.int8)
    for n in [3, 5, 100, -128, 300, 2**40, 2**53 + 1, 7]:
        assert compiled(x, n).tolist() == (x * n + n).tolist()
    assert compiled.runs == 5
    with pytest.raises(OverflowError):
        compiled(x, 2**70)


def test_whole_number_between_two_segments_is_an_input_of_both() -> None:
    def function(x: Any, n: int) -> Any:
        y = x * n
        if y.sum().item() > 10:
            y = y + n
        return y * n

    compiled = compare(function, WHOLE)
    assert compiled.segments is not None
    assert [len(piece.kinds) for piece in compiled.segments.pieces] == [1, 1, 1]


REAL: list[Any] = [
    lambda x, a: x * a.real, lambda x, a: x * 2 if type(a) is float else x * 3, lambda x, a: x * float(decimal.Decimal(a)),
    lambda x, a: x * array.array("d", [a])[0], lambda x, a: x * float.__mul__(a, 2.0), lambda x, a: x * statistics.mean([a, a]),
]  # fmt: skip


@pytest.mark.parametrize("function", REAL)
def test_float_that_is_read_without_asking_is_told_apart_by_its_value(function: Any) -> None:
    compare(function, [0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.7, 0.45])


def test_program_holds_for_one_value_until_a_number_had_two() -> None:
    compiled = pullback.compile(lambda x, a: x * a)
    for value, runs in [(0.1, 0), (0.2, 0), (0.2, 0), (0.2, 1), (0.3, 1), (0.4, 2), (0.2, 3)]:
        assert compiled(pullback.ones(1), value).item() == pytest.approx(value)
        assert compiled.runs == runs


OF_SIZES: list[Any] = [
    lambda x: x * TABLE[x.shape[0]], lambda x: x * (2.0 if len(range(x.shape[0])) == 5 else 1.0),
    lambda x: x * (2.0 if x.shape[0].real == 5 else 1.0), lambda x: x * (2.0 if "a" * x.shape[0] == "aaaaa" else 1.0),
    lambda x: x * (2.0 if math.comb(x.shape[0], 2) == 10 else 1.0), lambda x: x * (2.0 if type(x.shape[0]) is int else 1.0),
    lambda x: x * (2.0 if chr(x.shape[0]) == "\x05" else 1.0), lambda x: x * TABLE[: x.shape[0] + 1][-1],
    lambda x: x * (2.0 if x.shape[0] in b"\x05" else 1.0), lambda x: x * 2 if HALF * x.shape[0] == 2.5 else x,
    lambda x: x * 2 if PAIR == x.shape else x,  # noqa: SIM300  # the left one reads
    lambda x: x * 2 if x.shape.numel() == 10 else x,
    lambda x: x * 2 if pullback.broadcast_shapes(x.shape, (1, 2)) == (5, 2) else x, lambda x: looked_up(x, x.shape[0]),
]  # fmt: skip


@pytest.mark.parametrize("function", OF_SIZES)
def test_size_that_is_read_without_asking_has_a_program_of_its_own(function: Any) -> None:
    compare(function, SIZES, lambda size: pullback.ones(size, 2, requires_grad=True))
