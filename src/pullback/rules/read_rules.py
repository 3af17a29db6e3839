"""Reads the rules of derivatives/ as syntax and refuses, with file, line and remedy, what the language does not have."""

from __future__ import annotations

import ast
from pathlib import Path

from pullback.facts import FACTS
from pullback.rules.model import Kernel, Line, Operation, Refusal, Rule, TangentRule
from pullback.source_text import parse_file

KINDS = ("elementwise", "linear", "multilinear", "self_adjoint", "general", "non_differentiable")
STRUCTURES = ("elementwise", "along", "view", "leading", "matrices", "samples", "general")
OPTIONS = {
    "view",
    "in_place",
    "node",
    "promote",
    "outputs",
    "differentiable",
    "multi_view",
    "shows",
    "structure",
    "vectors",
    "draws",
    "out",
    "forward",
    "edges",
    "public",
    "aten",
    "backward",
    "parts",
    "fused",
    *FACTS,
}
_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Attribute, ast.Name, ast.Constant,
    ast.Tuple, ast.Subscript, ast.Slice, ast.Starred, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
    ast.keyword, ast.List,
)  # fmt: skip
ATTRIBUTES = {"shape", "dtype", "ndim", "device", "column_major"}


def read_rules(folder: Path, kernels: dict[str, Kernel], refusals: list[Refusal]) -> list[Operation]:
    """Every rule, joined with its kernel; what cannot be read is added to `refusals`."""
    seen: dict[str, Operation] = {}
    for path in sorted(folder.glob("*.py")):
        for statement in parse_file(path.read_text(), str(path)).body:
            if isinstance(statement, ast.FunctionDef):
                try:
                    _read_statement(statement, path, kernels, seen)
                except Refusal as refusal:
                    refusals.append(refusal)
    return list(seen.values())


def read_rules_of(statements: list[ast.FunctionDef], path: Path, kernels: dict[str, Kernel]) -> dict[str, Operation]:
    """The rules among the statements of one file, by name."""
    seen: dict[str, Operation] = {}
    for statement in statements:
        _read_statement(statement, path, kernels, seen)
    return seen


def _read_statement(
    statement: ast.FunctionDef, path: Path, kernels: dict[str, Kernel], seen: dict[str, Operation]
) -> None:
    kind, options = _read_decorator(statement, path)
    if kind == "tangent":
        name = statement.name.removesuffix("_tangent")
        if name not in seen:
            raise Refusal(path, statement.lineno, f"no rule {name} above this tangent: write it below its rule")
        seen[name].rule.tangent = _read_tangent(statement, path, _kernel_of(name, kernels, path, statement))
        return
    kernel = _kernel_of(statement.name, kernels, path, statement)
    rule = _read_rule(statement, path, kind, options, kernel)
    if rule.name in seen:
        raise Refusal(path, statement.lineno, f"{rule.name} already has a rule in {seen[rule.name].rule.path}")
    seen[rule.name] = Operation(kernel, rule)


def _kernel_of(name: str, kernels: dict[str, Kernel], path: Path, statement: ast.FunctionDef) -> Kernel:
    kernel = kernels.get(name)
    if kernel is None:
        raise Refusal(
            path, statement.lineno, f"no kernel named {name}: write it in src/pullback/kernels/{path.stem}.py"
        )
    return kernel


def _read_decorator(statement: ast.FunctionDef, path: Path) -> tuple[str, dict[str, object]]:
    if len(statement.decorator_list) != 1:
        raise Refusal(path, statement.lineno, f"{statement.name} needs one kind: @{', @'.join(KINDS)} or @tangent")
    decorator = statement.decorator_list[0]
    options: dict[str, object] = {}
    if isinstance(decorator, ast.Call):
        for keyword in decorator.keywords:
            if keyword.arg not in OPTIONS:
                raise Refusal(path, decorator.lineno, f"unknown option {keyword.arg}: one of {sorted(OPTIONS)}")
            options[str(keyword.arg)] = ast.literal_eval(keyword.value)
        if options.get("structure", "general") not in STRUCTURES:
            raise Refusal(path, decorator.lineno, f"structure={options['structure']!r} is not one of {STRUCTURES}")
        decorator = decorator.func
    kind = decorator.id if isinstance(decorator, ast.Name) else ""
    if kind not in (*KINDS, "tangent"):
        raise Refusal(path, statement.lineno, f"@{ast.unparse(decorator)} is not a kind: one of {', '.join(KINDS)}")
    return kind, options


def _read_rule(statement: ast.FunctionDef, path: Path, kind: str, options: dict[str, object], kernel: Kernel) -> Rule:
    outputs = options.get("outputs", ("result",))
    grads, parameters = [], []
    for argument in statement.args.args:
        name = argument.arg
        if name == "grad" or name.startswith("grad_") or name == "grads":
            grads.append(name)
        elif kernel.parameter(name) is None:
            raise Refusal(
                path, statement.lineno, f"{kernel.name} has no parameter {name}: it has "
                f"{', '.join(p.name for p in kernel.parameters)}"
            )  # fmt: skip
        else:
            parameters.append(name)
    saved_outputs = [a.arg for a in statement.args.kwonlyargs]
    for name in saved_outputs:
        if name not in (outputs if isinstance(outputs, tuple) else ()):
            raise Refusal(path, statement.lineno, f"{name} is not an output of {kernel.name}: outputs={outputs}")
    rule = Rule(
        statement.name, kind, path.stem, path, statement.lineno, tuple(parameters), tuple(saved_outputs), tuple(grads),
        options=options,
    )  # fmt: skip
    if kind == "non_differentiable":
        return rule
    known = {*parameters, *saved_outputs, *grads, "F"}
    returned = _read_body(statement, path, known, rule.assignments)
    if not (isinstance(returned, ast.Call) and isinstance(returned.func, ast.Name) and returned.func.id == "wrt"):
        raise Refusal(path, returned.lineno, "a rule returns wrt(input=..., ...)")
    for keyword in returned.keywords:
        target = kernel.parameter(str(keyword.arg))
        if target is None or not target.is_tensor:
            raise Refusal(path, keyword.value.lineno, f"wrt({keyword.arg}=...): {kernel.name} has no such tensor")
        value = keyword.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "not_implemented":
            rule.lines.append(Line(str(keyword.arg), value, ast.literal_eval(value.args[0])))
            continue
        check_expression(value, path, known)
        rule.lines.append(Line(str(keyword.arg), value))
    order = {p.name: i for i, p in enumerate(kernel.parameters)}
    edges = options.get("edges")
    if isinstance(edges, tuple):
        order.update({str(name): i - len(edges) for i, name in enumerate(edges)})
    rule.lines.sort(key=lambda line: order[line.parameter])
    return rule


def _read_body(
    statement: ast.FunctionDef, path: Path, known: set[str], assignments: list[tuple[str, ast.expr]]
) -> ast.expr:
    body = statement.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    for part in body[:-1]:
        if not (isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name)):
            raise Refusal(path, part.lineno, "only single assignments `name = expression` may stand before the return")
        check_expression(part.value, path, known)
        name = part.targets[0].id
        if name in known:
            raise Refusal(path, part.lineno, f"{name} is assigned twice or hides a parameter: use another name")
        known.add(name)
        assignments.append((name, part.value))
    last = body[-1] if body else statement
    if not isinstance(last, ast.Return) or last.value is None:
        raise Refusal(path, statement.lineno, f"{statement.name} must end with a return")
    return last.value


def check_expression(expression: ast.expr, path: Path, known: set[str]) -> None:
    """Refuse syntax outside of the rule language and names that nothing defines."""
    callees = {id(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
    for node in ast.walk(expression):
        if not isinstance(node, _ALLOWED):
            raise Refusal(
                path, getattr(node, "lineno", expression.lineno),
                f"{type(node).__name__} is not part of the rule language: move it to a kernel or to formulas.py",
            )  # fmt: skip
        if (
            isinstance(node, ast.Name)
            and node.id not in known
            and node.id not in ("len", "True", "False", "max", "min")
        ):
            raise Refusal(path, node.lineno, f"{node.id} is not a parameter, output, gradient or assigned name")
        if isinstance(node, ast.Attribute):
            base = node.value
            is_function = isinstance(base, ast.Name) and base.id == "F"
            if is_function and id(node) not in callees:
                raise Refusal(path, node.lineno, f"F.{node.attr} must be called")
            if not is_function and node.attr not in ATTRIBUTES:
                raise Refusal(path, node.lineno, f".{node.attr}: of a tensor a rule may read {sorted(ATTRIBUTES)}; "
                                                 f"write F.{node.attr}(...) for an operation")  # fmt: skip


def _read_tangent(statement: ast.FunctionDef, path: Path, kernel: Kernel) -> TangentRule:
    parameters, tangents = [], []
    for argument in statement.args.args:
        if argument.arg.endswith("_tangent"):
            tangents.append(argument.arg.removesuffix("_tangent"))
        else:
            parameters.append(argument.arg)
    outputs = tuple(a.arg for a in statement.args.kwonlyargs)
    known = {*parameters, *[f"{t}_tangent" for t in tangents], *outputs, "F"}
    for name in (*parameters, *tangents):
        if kernel.parameter(name) is None:
            raise Refusal(path, statement.lineno, f"{kernel.name} has no parameter {name}")
    assignments: list[tuple[str, ast.expr]] = []
    expression = _read_body(statement, path, known, assignments)
    check_expression(expression, path, known)
    return TangentRule(path, statement.lineno, tuple(parameters), tuple(tangents), outputs, assignments, expression)
