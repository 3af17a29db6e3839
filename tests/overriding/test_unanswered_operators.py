"""Operators whose class answers NotImplemented leave the operation to the other operand, as Python's own do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import _C


class Silent(pullback.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Answering:
    def __radd__(self, other: Any) -> str:
        return "radd"

    def __gt__(self, other: Any) -> str:
        return "gt"


SILENT = pullback.ones(2).as_subclass(Silent)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: SILENT + 1, r"unsupported operand type\(s\) for \+: 'Silent' and 'int'"),
        (lambda: 1 - SILENT, r"unsupported operand type\(s\) for -: 'int' and 'Silent'"),
        (lambda: SILENT @ SILENT, r"unsupported operand type\(s\) for @"),
        (lambda: pullback.ones(2) * SILENT, r"unsupported operand type\(s\) for \*: 'Tensor' and 'Silent'"),
        (lambda: SILENT**2, r"unsupported operand type\(s\) for \*\*"),
        (lambda: SILENT < 1, "'<' not supported between instances of 'Silent' and 'int'"),
        (lambda: operator.iadd(SILENT, 1), r"unsupported operand type\(s\) for \+="),
    ],
    ids=["add", "rsub", "matmul", "plain", "pow", "less", "in place"],
)
def test_python_says_that_neither_side_can(function: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        function()


def test_equality_is_identity() -> None:
    assert (SILENT == 1) is False
    assert (SILENT != SILENT) is False


def test_the_other_operand_gets_its_turn() -> None:
    other = Answering()
    assert (SILENT + other, operator.lt(SILENT, other)) == ("radd", "gt")


def test_functions_say_that_nobody_answered() -> None:
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        pullback.sin(SILENT)


def test_function_modes_are_switched_off_too() -> None:
    class Refusing(pullback.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError

    with Refusing(), _C.DisableTorchFunction():
        assert type(SILENT + 1) is pullback.Tensor
