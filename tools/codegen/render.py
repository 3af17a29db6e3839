"""Turns a rule's expression into the text of one path: arrays, Tensors or tangents."""

from __future__ import annotations

import ast
import copy

from tools.codegen.model import Operation, Refusal


class Library:
    """What `F.name` can mean: kernels and array formulas on one path, operations and formulas on the other.

    `native_lines` names the lines of rules that are compiled, as the functions that compute them.
    """

    def __init__(self, kernels: dict[str, str], operations: dict[str, str], formulas: set[str]) -> None:
        self.kernels = kernels
        self.operations = operations
        self.formulas = formulas
        self.native_lines: set[str] = set()


class _Renderer(ast.NodeTransformer):
    def __init__(self, operation: Operation, library: Library, *, on_arrays: bool, saved: bool) -> None:
        self.operation = operation
        self.library = library
        self.on_arrays = on_arrays
        self.saved = saved
        self.imports: set[tuple[str, str]] = set()
        self._tensors = {p.name for p in operation.kernel.tensors} | set(operation.rule.outputs)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "F":
            name = function.attr
            arguments = [self.visit(a) for a in node.args]
            keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
            if name == "conj":
                # Numbers are conjugated as well, and real values are left alone.
                if self.on_arrays:
                    return ast.Call(ast.Attribute(arguments[0], "conjugate", ast.Load()), [], [])
                return ast.Call(ast.Name("conjugate", ast.Load()), arguments, [])
            return ast.Call(self._callee(name, node.lineno), arguments, keywords)
        return self.generic_visit(node)

    def _callee(self, name: str, line: int) -> ast.expr:
        rule = self.operation.rule
        if self.on_arrays:
            if name in self.library.kernels:
                self.imports.add((f"pullback.kernels.{self.library.kernels[name]}", name))
                return ast.Name(f"{name}_kernel", ast.Load())
            if name in self.library.formulas:
                self.imports.add(("pullback.generated.array_formulas", name))
                return ast.Name(f"{name}_kernel", ast.Load())
            raise Refusal(rule.path, line, f"F.{name}: no kernel and no formula of that name")
        if name not in self.library.operations and name not in self.library.formulas:
            raise Refusal(
                rule.path,
                line,
                f"F.{name} cannot be differentiated: give the kernel a rule, or write {name} in formulas.py",
            )
        return ast.Attribute(ast.Name("F", ast.Load()), name, ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self.saved and isinstance(node.value, ast.Name) and node.value.id in self._tensors:
            if node.attr == "ndim":
                return ast.Call(ast.Name("len", ast.Load()), [ast.Name(f"{node.value.id}_shape", ast.Load())], [])
            return ast.Name(f"{node.value.id}_{node.attr}", ast.Load())
        return self.generic_visit(node)


def render(
    expression: ast.expr, operation: Operation, library: Library, *, on_arrays: bool, saved: bool = True
) -> tuple[str, set[tuple[str, str]]]:
    """The text of `expression` on one path, and the kernels it calls as (module, name)."""
    renderer = _Renderer(operation, library, on_arrays=on_arrays, saved=saved)
    text = ast.unparse(ast.fix_missing_locations(renderer.visit(copy.deepcopy(expression))))
    return text, renderer.imports
