"""Writes the forward-mode function of an operation, which its kind gives.

It is written when it is first asked for (pullback/recording/rendered.py).
"""

from __future__ import annotations

import ast

from pullback.rules.model import TENSOR_LIST, Operation
from pullback.rules.render import render
from pullback.rules.saved_values import saved_values


def emit_tangent(operation: Operation) -> list[str]:
    """The lines of `<name>_tangent(result, <parameters>, <tangents>)`."""
    parameters = [p.name for p in operation.kernel.parameters]
    tangents = [f"{p.name}_tangent" for p in operation.inputs]
    out = [f"def {operation.name}_tangent({', '.join(['result', *parameters, *tangents])}):"]
    rule = operation.rule
    if rule.tangent is not None:
        return [*out, *_explicit(operation), ""]
    if any(line.not_implemented for line in rule.lines):
        return [*out, f'    raise forward_not_implemented("{operation.name}")', ""]
    writer = {"elementwise": _lines, "self_adjoint": _lines, "linear": _linear, "multilinear": _multilinear}.get(
        rule.kind
    )
    return [*out, *(writer(operation) if writer else _double_pullback(operation)), ""]


def _outputs(operation: Operation, names: tuple[str, ...]) -> list[str]:
    outputs = operation.rule.output_names
    if len(outputs) == 1:
        return []
    return [f"    {name} = result[{outputs.index(name)}]" for name in names]


def _explicit(operation: Operation) -> list[str]:
    tangent = operation.rule.tangent
    assert tangent is not None
    out = _outputs(operation, tangent.outputs)
    for p in operation.inputs:
        out += [f"    if {p.name}_tangent is None:", f"        {p.name}_tangent = zeros_like_input({p.name})"]
    for name, expression in tangent.assignments:
        out.append(f"    {name} = {_text(expression, operation)}")
    out.append(f"    return {_text(tangent.expression, operation)}")
    return out


def _text(expression: ast.expr, operation: Operation) -> str:
    return render(expression, operation, None, on_arrays=False, saved=False)[0]


def _lines(operation: Operation) -> list[str]:
    """The sum of the lines with the tangent for the gradient; conjugated twice, since a line is the adjoint."""
    saved = saved_values(operation)
    out = ["    terms = []"]
    assigned = dict(operation.rule.assignments)
    for line in operation.rule.lines:
        tangent = f"{line.parameter}_tangent"
        out += [f"    if {tangent} is not None:", f"        grad = conjugate({tangent})"]
        for name, _ in operation.rule.assignments:
            if name in saved.of_line[line.parameter].assignments:
                out.append(f"        {name} = {_text(assigned[name], operation)}")
        out.append(f"        terms.append(conjugate({_text(line.expression, operation)}))")
    return [*out, f"    return {_with_missing(operation, 'sum_of_terms(terms, result)')}"]


def _with_missing(operation: Operation, tangent: str) -> str:
    """The tangent, connected with what is read for the inputs without one. See Note [Missing tangents]."""
    if len(operation.inputs) < 2 or any(p.role == TENSOR_LIST for p in operation.inputs):
        return tangent
    names = {p.name for p in operation.kernel.tensors} | (
        {"result"} if len(operation.rule.output_names) == 1 else set()
    )
    present, missing = "", ""
    for p in operation.inputs:
        if operation.rule.kind == "multilinear":
            read = [other.name for other in operation.inputs if other is not p]
        else:
            read = sorted(saved_values(operation).of_line[p.name].values & names)
        if read:
            listed = f"({', '.join(read)},)"
            if operation.rule.kind != "general":  # whose lines may share steps that read more than each needs
                present += f"*(() if {p.name}_tangent is None else {listed}), "
            missing += f"*({listed} if {p.name}_tangent is None else ()), "
    return f"connected({tangent}, ({present}), ({missing}))" if missing else tangent


def _call(operation: Operation, replaced: dict[str, str]) -> str:
    arguments = []
    for p in operation.kernel.parameters:
        value = replaced.get(p.name, p.name)
        arguments.append(f"{p.name}={value}" if p.keyword_only else value)
    return f"F.{operation.name}({', '.join(arguments)})"


def _linear(operation: Operation) -> list[str]:
    out = []
    for p in operation.inputs:
        if p.role == TENSOR_LIST:
            out.append(f"    {p.name}_tangent = [zeros_like_input(x) if t is None else t "
                       f"for x, t in zip({p.name}, {p.name}_tangent, strict=True)]")  # fmt: skip
        else:
            out += [f"    if {p.name}_tangent is None:", f"        {p.name}_tangent = zeros_like_input({p.name})"]
    replaced = {p.name: f"{p.name}_tangent" for p in operation.inputs}
    return [*out, f"    return {_call(operation, replaced)}"]


def _multilinear(operation: Operation) -> list[str]:
    out = ["    terms = []"]
    for p in operation.inputs:
        out += [
            f"    if {p.name}_tangent is not None:",
            f"        terms.append({_call(operation, {p.name: f'{p.name}_tangent'})})",
        ]
    return [*out, f"    return {_with_missing(operation, 'sum_of_terms(terms, result)')}"]


def _double_pullback(operation: Operation) -> list[str]:
    tensors = ", ".join(p.name for p in operation.inputs)
    tangents = ", ".join(f"{p.name}_tangent" for p in operation.inputs)
    names = [p.name for p in operation.inputs]
    replaced = {name: f"xs[{index}]" for index, name in enumerate(names)}
    pulled = f"double_pullback(lambda xs: {_call(operation, replaced)}, ({tensors},), ({tangents},))"
    return [f"    return {_with_missing(operation, pulled)}"]
