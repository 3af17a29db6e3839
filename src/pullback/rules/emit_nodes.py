"""Writes the node class of an operation: what it saved, and its rule on arrays."""

from __future__ import annotations

from pullback.rules.emit_apply import (
    Path,
    emit_body,
    has_list,
    is_sum_over_outputs,
    line_function_name,
    line_parameters,
    line_steps,
)
from pullback.rules.model import Operation
from pullback.rules.render import Library
from pullback.rules.saved_values import how_shown, is_fresh, saved_values


def emit_node(operation: Operation, library: Library) -> tuple[list[str], set[tuple[str, str]]]:
    """The lines of the class, and the kernels it imports."""
    rule, saved = operation.rule, saved_values(operation)
    if rule.unimplemented is not None:
        return [], set()
    out = [f"class {rule.class_name}(OperationNode):", '    __slots__ = ("__dict__",)']
    out.append(f'    operation = "{operation.name}"')
    if rule.class_name != rule.node_name:
        out.append(f'    shown = "{rule.node_name.rpartition("::")[2]}"')
    if rule.options.get("fused"):
        out.append(f'    fused = "{rule.options["fused"]}"')
    for attribute, names in (
        ("tensor_names", saved.tensors()),
        ("value_names", saved.plain()),
        ("fact_names", [f"{name}_{fact}" for name, fact in saved.attributes()]),
    ):
        if names:
            out.append(f"    {attribute} = {tuple(names)!r}")
    fresh: tuple[int, ...] = tuple(is_fresh(line, rule) and not is_sum_over_outputs(operation) for line in rule.lines)
    if len(rule.lines) == 1 and (shown := how_shown(rule.lines[0])):
        fresh = (shown,)
    if any(fresh) and not has_list(operation):
        out.append(f"    fresh = {fresh!r}")
    if len(rule.output_names) > 1:
        out.append(f"    output_count = {len(rule.output_names)}")
    elif rule.options.get("multi_view"):
        out.append("    output_count: int = 1")
    path = Path(on_arrays=True, library=library, native_lines=library.native_lines)
    out += ["", "    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:"]
    out += ["        " + text for text in emit_body(operation, path)]
    if "::" in rule.node_name:
        out += ["", "    def name(self) -> str:", f'        return "{rule.node_name}"']
    return [*out, ""], path.imports


def emit_line_functions(operation: Operation, library: Library, imports: set[tuple[str, str]]) -> list[str]:
    """The lines that are compiled, each as a function on arrays: its text is the compiled kernel's reference."""
    out: list[str] = []
    for line in operation.rule.lines:
        name = line_function_name(operation, line)
        if name not in library.native_lines:
            continue
        path = Path(on_arrays=True, library=library, saved=False)
        parameters = ", ".join(f"{p}: Any" for p in line_parameters(operation, line) or [])
        steps = line_steps(operation, line, path, shared=[])
        out += ["@native", f"def {name}({parameters}, owned: bool = False) -> Any:", *[f"    {step}" for step in steps]]
        out += [f"    return {path.text(line.expression, operation)}", "", ""]
        imports |= path.imports
    return out
