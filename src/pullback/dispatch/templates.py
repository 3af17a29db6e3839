"""The calls that declarations name: `aten="_softmax(input, dim, False)"` as something to evaluate, forwards and backwards.

The text is Python over the operation's own parameters (in `backward=` also `grad`, what the node saved, and `output_mask`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from pullback.backend import layout
from pullback.backend.array_module import as_array
from pullback.kernels.exponential import exp
from pullback.tensor.tensor import Tensor, new_tensor


def memory_format(order: Any) -> Any:
    """The memory format of a name."""
    return getattr(layout, "contiguous_format" if order == "C" else order) if isinstance(order, str) else order


def total_weight(target: Tensor, weight: Tensor | None, ignore_index: int, dtype: Any) -> Tensor:
    """What a mean of weighted losses is divided by, which PyTorch's kernels give as a second result."""
    counted = target._array[target._array != ignore_index]
    total = counted.size if weight is None else weight._array[counted].sum()
    return new_tensor(as_array(dtype.numpy_dtype.type(total)))


def placed(indices: Any, dims: Any) -> list[Any]:
    """Indices at the dimensions that they index, None at those between."""
    found: list[Any] = [None] * (max(dims, default=-1) + 1)
    for index, dim in zip(indices, dims, strict=True):
        found[dim] = index
    return found


def exp_of_minus_abs(input: Tensor, grad: Tensor) -> Tensor:
    """What PyTorch's kernel of logsigmoid keeps for backward (of two arguments, so that it does not stand for one)."""
    return new_tensor(exp(-abs(input._array)))


def told_scale(scale: float | None, query: Tensor) -> float | None:
    """The factor of attention scores as PyTorch's kernel is told it: None stands for the usual one."""
    return None if scale == 1 / math.sqrt(query._array.shape[-1] or 1) else scale


WORDS: dict[str, Any] = {
    "exp_of_minus_abs": exp_of_minus_abs, "float": float, "len": len, "list": list, "max": max,
    "memory_format": memory_format, "placed": placed, "told_scale": told_scale,
    "total_weight": total_weight, "tuple": tuple,
}  # fmt: skip
"""What a declaration may call that is not an operation."""


_HANDING = ("contiguous", "told_scale")
"""What hands its first argument on, whatever the others are."""


class Template:
    """One call of a declaration: the operator's name, and an expression per argument."""

    def __init__(self, text: str) -> None:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call), text
        self.name = ast.unparse(call.func)
        self.positional = [_Expression(a) for a in call.args]
        self.keywords = {str(k.arg): _Expression(k.value) for k in call.keywords}

    @property
    def told(self) -> int:
        """How many arguments hand a value of the operation on: `threshold_backward(grad, result, 0)` tells of two."""
        return sum([e.parameter is not None for e in (*self.positional, *self.keywords.values())])

    def evaluate(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the call, from the operation's."""
        return [e.value(values) for e in self.positional], {k: e.value(values) for k, e in self.keywords.items()}

    def solve(self, names: list[str], given: dict[str, Any]) -> dict[str, Any]:
        """The operation's arguments, from those of the call; what the call does not tell is left out."""
        found: dict[str, Any] = {}
        for name, expression in [*zip(names, self.positional, strict=False), *self.keywords.items()]:
            if expression.parameter is not None and name in given:
                found[expression.parameter] = given[name]
        return found


class _Expression:
    def __init__(self, tree: ast.expr) -> None:
        self.parameter = _parameter_of(tree)
        self.code = compile(ast.Expression(tree), "<declaration>", "eval")

    def value(self, values: dict[str, Any]) -> Any:
        return eval(self.code, WORDS, values)


def _parameter_of(tree: ast.expr) -> str | None:
    """The one value that an argument hands on: `dim`, `list(padding)`, `input.shape`."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return f"{tree.value.id}.{tree.attr}"
    if isinstance(tree, ast.Subscript):
        return _parameter_of(tree.value)  # the size of one dimension stands for the shape
    if isinstance(tree, ast.Call):
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if name in _HANDING or (len(tree.args) == 1 and not _holds_call(tree)):
            return _parameter_of(tree.args[0])
    return None


@cache
def template(text: str) -> Template:
    """The call that a text names."""
    return Template(text)


_SIGNS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip


Evaluate = Callable[[Callable[[str], Any], Any], Any]
"""A part of an expression, to be called with what names of operations mean, and with the values."""


def run_expression(text: str, functions: Callable[[str], Any], values: Any) -> Any:
    """Evaluate an expression of several calls: a name that is called is an operation, every other a value."""
    return _read(text)(functions, values)


@cache
def _read(text: str) -> Evaluate:
    return _prepare(ast.parse(text, mode="eval").body)


def _prepare(tree: ast.expr) -> Evaluate:
    """Read a part of an expression once; calls stay calls, everything without one is compiled."""
    if not _holds_call(tree):
        expression = _Expression(tree)
        return lambda functions, values: expression.value(values)
    if isinstance(tree, ast.Tuple):
        elements = [_prepare(e) for e in tree.elts]
        return lambda functions, values: tuple([e(functions, values) for e in elements])
    if isinstance(tree, ast.IfExp):
        test, body, other = _prepare(tree.test), _prepare(tree.body), _prepare(tree.orelse)
        return lambda functions, values: (body if test(functions, values) else other)(functions, values)
    if isinstance(tree, ast.BinOp):
        return _prepare_call(_SIGNS[type(tree.op)], [tree.left, tree.right], {})
    if isinstance(tree, ast.UnaryOp):
        return _prepare_call("neg", [tree.operand], {})
    assert isinstance(tree, ast.Call), ast.unparse(tree)
    return _prepare_call(ast.unparse(tree.func), tree.args, {str(k.arg): k.value for k in tree.keywords})


def _prepare_call(name: str, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Evaluate:
    given = [_prepare(a) for a in args]
    named = {k: _prepare(v) for k, v in keywords.items()}

    def run(functions: Callable[[str], Any], values: Any) -> Any:
        positional = [g(functions, values) for g in given]
        return functions(name)(*positional, **{k: g(functions, values) for k, g in named.items()})

    return run


def _holds_call(tree: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id not in WORDS for n in ast.walk(tree)
    )
