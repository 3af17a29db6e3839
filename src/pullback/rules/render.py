"""Turns a rule's expression into the text of one path: arrays, Tensors or tangents."""

from __future__ import annotations

import ast
from typing import Any

from pullback.rules.model import Operation, Refusal


class Library:
    """What `F.name` can mean: kernels and array formulas on one path, operations and formulas on the other.

    `native_lines` names the lines of rules that are compiled, as the functions that compute them.
    """

    def __init__(self, kernels: dict[str, str], operations: dict[str, str], formulas: set[str]) -> None:
        self.kernels = kernels
        self.operations = operations
        self.formulas = formulas
        self.native_lines: set[str] = set()

    def callee(self, name: str, operation: Operation, line: int, *, on_arrays: bool) -> tuple[ast.expr, str]:
        """The function that `F.name` is, and the module it must be imported from ("" for none)."""
        path = operation.rule.path
        if on_arrays:
            if name in self.kernels:
                return ast.Name(f"{name}_kernel", ast.Load()), f"pullback.kernels.{self.kernels[name]}"
            if name in self.formulas:
                return ast.Name(f"{name}_kernel", ast.Load()), "pullback.recording.array_formulas"
            raise Refusal(path, line, f"F.{name}: no kernel and no formula of that name")
        if name not in self.operations and name not in self.formulas:
            message = f"F.{name} cannot be differentiated: give the kernel a rule, or write {name} in formulas.py"
            raise Refusal(path, line, message)
        return left_to_f(name), ""


def left_to_f(name: str) -> ast.expr:
    """`F.name`, whatever `F` will be."""
    return ast.Attribute(ast.Name("F", ast.Load()), name, ast.Load())


ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "over"}
"""On Tensors, operators with a number are functions: see formulas/number_arithmetic.py."""


class _Renderer(ast.NodeTransformer):
    def __init__(
        self, operation: Operation, library: Library | None, *, on_arrays: bool, saved: bool, inlined: dict[str, str]
    ) -> None:
        self.operation = operation
        self.inlined = inlined
        self.library = library
        self.on_arrays = on_arrays
        self.saved = saved
        self.imports: set[tuple[str, str]] = set()
        self._tensors = {p.name for p in operation.kernel.tensors} | set(operation.rule.outputs)
        self._plain = {p.name for p in operation.kernel.parameters if not p.is_tensor}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "F":
            name = function.attr
            arguments = [self.visit(a) for a in node.args]
            keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
            if name == "depending_on" and not self.on_arrays and len(arguments) == 2:
                arguments.append(ast.Constant(self.operation.rule.node_name.replace("Backward", "BackwardBackward")))
            if name == "conj":
                # Numbers are conjugated as well, and real values are left alone.
                if self.on_arrays:
                    return ast.Call(ast.Attribute(arguments[0], "conjugate", ast.Load()), [], [])
                return ast.Call(ast.Name("conjugate", ast.Load()), arguments, [])
            return ast.Call(self._callee(name, node.lineno), arguments, keywords)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        name = ARITHMETIC.get(type(node.op))
        if self.on_arrays or name is None or self._is_number(node.left) == self._is_number(node.right):
            return self.generic_visit(node)
        return ast.Call(left_to_f(name), [self.visit(node.left), self.visit(node.right)], [])

    def _is_number(self, node: ast.expr) -> bool:
        """Whether a part of a rule is a number whatever the arguments are; a tensor operand may be one, and is not asked."""
        if isinstance(node, ast.BinOp):
            return self._is_number(node.left) and self._is_number(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "F.conj":
            return self._is_number(node.args[0])
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in self._plain)

    def _callee(self, name: str, line: int) -> ast.expr:
        if self.library is None:
            return left_to_f(name)
        function, module = self.library.callee(name, self.operation, line, on_arrays=self.on_arrays)
        if module:
            self.imports.add((module, name))
        return function

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = node.test
        if not isinstance(test, ast.Attribute) or test.attr != "column_major":
            return self.generic_visit(node)
        if self.on_arrays:  # how PyTorch's graph comes to the same values
            return self.visit(node.orelse)
        assert isinstance(test.value, ast.Name)
        place = [p.name for p in self.operation.inputs].index(test.value.id)
        asked = f"self.is_column_major({test.value.id!r}, {place})"
        return ast.IfExp(ast.parse(asked, mode="eval").body, self.visit(node.body), self.visit(node.orelse))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.inlined:
            return ast.parse(self.inlined[node.id], mode="eval").body
        return _of_self(node.id) if self.saved and node.id in self._plain else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self.saved and isinstance(node.value, ast.Name) and node.value.id in self._tensors:
            if node.attr == "ndim":
                return ast.Call(ast.Name("len", ast.Load()), [_of_self(f"{node.value.id}_shape")], [])
            return _of_self(f"{node.value.id}_{node.attr}")
        return self.generic_visit(node)


def _of_self(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("self", ast.Load()), f"saved_{name}", ast.Load())


def render(
    expression: ast.expr, operation: Operation, library: Library | None, *, on_arrays: bool, saved: bool = True,
    inlined: dict[str, str] | None = None,
) -> tuple[str, set[tuple[str, str]]]:  # fmt: skip
    """The text of `expression` on one path, and the kernels it calls as (module, name).

    `saved`: the node's saved values are read, as `self.saved_...` where they are not tensors; else the names themselves.
    `inlined` says what stands in the place of some names. Without a library `F` stays in the text.
    """
    renderer = _Renderer(operation, library, on_arrays=on_arrays, saved=saved, inlined=inlined or {})
    text = ast.unparse(ast.fix_missing_locations(renderer.visit(_copied(expression))))
    return text, renderer.imports


def _copied(node: Any) -> Any:
    """A copy of an expression; `copy.deepcopy` takes a third of the time of a whole run of the generator."""
    if isinstance(node, list):
        return [_copied(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    kind = type(node)
    copied = kind.__new__(kind)  # kind() without the fields warns, and raises from Python 3.15 on
    vars(copied).update({name: _copied(value) for name, value in vars(node).items()})
    return copied


def check_names(operation: Operation, library: Library) -> None:
    """Refuse a rule that calls what does not exist, on arrays or on Tensors."""
    rule = operation.rule
    expressions = [expression for _, expression in rule.assignments]
    expressions += [line.expression for line in rule.lines if line.not_implemented is None]
    for expression in expressions:
        render(expression, operation, library, on_arrays=True)
    if rule.tangent is not None:
        expressions += [*[expression for _, expression in rule.tangent.assignments], rule.tangent.expression]
    for expression in expressions:
        render(expression, operation, library, on_arrays=False)
