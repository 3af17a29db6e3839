"""Writes a rule as the body of a function of its node: on arrays, on Tensors, and on arrays of half precision.

The generator writes the first into the node's class. The others are seldom run: they are written when they are first
asked for (pullback/recording/rendered.py).
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

from pullback.facts import fact_of
from pullback.rules.model import TENSOR, TENSOR_LIST, Line, Operation
from pullback.rules.render import Library, render
from pullback.rules.saved_values import is_fresh, saved_values

# Functions that put the gradient at its place among zeros, and how many arguments they leave out (a position has no end
# and no step).
_PLACING = {"F.select_back": 2, "F.slice_back": 0}


@dataclass
class Path:
    """One meaning of a rule's text.

    `library` is what the generator knows of names; without it `F` is left in the text. `native_lines` names the functions
    that compute a line each.
    """

    on_arrays: bool
    library: Library | None = None
    native_lines: set[str] = field(default_factory=set)
    widened: bool = False
    saved: bool = True
    imports: set[tuple[str, str]] = field(default_factory=set)
    inlined: dict[str, str] = field(default_factory=dict)
    """Names that one place reads, and what is written there instead."""

    def text(self, expression: ast.expr, operation: Operation) -> str:
        text, used = render(
            expression, operation, self.library, on_arrays=self.on_arrays, saved=self.saved, inlined=self.inlined
        )
        self.imports |= used
        return text


def emit_body(operation: Operation, path: Path) -> list[str]:
    """The body of the function that computes the gradients of the inputs: it reads `self`, `grads`, `edges`, `owned`."""
    rule, saved = operation.rule, saved_values(operation)
    tests = ["self.released"] if saved.tensors() else []
    if path.on_arrays and not path.widened and rounds_often(operation):
        tests.append("grads[0].dtype.itemsize == 2")
    out: list[str] = []
    if path.on_arrays and not path.widened and tests:
        out += [f"if {' or '.join(tests)}:", "    return apply_rarely(self, grads, edges)"]
    elif saved.tensors():
        out += ["if self.released:", "    refuse_freed(self, edges)"]
    if len(rule.lines) == 1 and rule.lines[0].not_implemented is None:
        if _reads(operation, rule.lines[0])["grad"] == 1 and path.on_arrays and not path.widened:
            path.inlined["grad"] = "grads[0]"
        else:
            out += _emit_grads(operation, path)
        steps, value = _line_value(operation, rule.lines[0], path, set())
        return [*out, *steps, f"return {value if has_list(operation) else f'({value},)'}"]
    return [*out, *_emit_grads(operation, path), *_emit_lines(operation, path)]


def _reads(operation: Operation, line: Line) -> Counter[str]:
    """Count how often a line, or a step on the way to it, reads each name."""
    steps = _steps_to(operation, line)
    texts = [line.expression, *[expression for name, expression in operation.rule.assignments if name in steps]]
    return Counter(node.id for text in texts for node in ast.walk(text) if isinstance(node, ast.Name))


def _steps_to(operation: Operation, line: Line) -> set[str]:
    """The assigned names that a line reads, directly or through others."""
    return set(saved_values(operation).of_line[line.parameter].assignments)


def has_list(operation: Operation) -> bool:
    """Whether the node has an edge for each tensor of a list."""
    return any(p.role == TENSOR_LIST for p in operation.inputs)


def needs_broadcast(operation: Operation) -> bool:
    """Whether gradients may have to be summed to their input's shape or cast to its dtype."""
    return operation.rule.kind == "elementwise" and len(operation.kernel.tensors) > 1


def _emit_lines(operation: Operation, path: Path) -> list[str]:
    """Several lines, each computed only where its gradient is wanted."""
    rule, saved = operation.rule, saved_values(operation)
    out: list[str] = []
    unpacked: set[str] = set()
    for name in shared_assignments(operation):
        expression = dict(rule.assignments)[name]
        tensors = sorted(saved.uses(expression).values & set(saved.tensors()))
        readers = [i for i, x in enumerate(rule.lines) if x.not_implemented is None and name in _steps_to(operation, x)]
        steps = [text for t in tensors if t not in unpacked for text in _unpack(t, operation, path)]
        steps.append(f"{name} = {path.text(expression, operation)}")
        if len(readers) == len(rule.lines) or not tensors:
            unpacked.update(tensors)
            out += steps
        else:  # what it reads was saved only where one of these gradients is wanted
            wanted = " or ".join(f"edges[{index}] is not None" for index in readers)
            out += [f"if {wanted}:", *["    " + text for text in steps]]
    blocks = [_line_value(operation, line, path, unpacked) for line in rule.lines]
    stepwise = [line for line, (steps, _) in zip(rule.lines, blocks, strict=True) if steps]
    if stepwise:
        out.append(" = ".join([*[f"grad_of_{line.parameter}" for line in stepwise], "None"]))
    values = []
    for index, (line, (steps, value)) in enumerate(zip(rule.lines, blocks, strict=True)):
        if not steps:
            values.append(f"{value} if edges[{index}] is not None else None")
            continue
        target = f"grad_of_{line.parameter}"
        out += [f"if edges[{index}] is not None:", *["    " + text for text in steps]]
        if value not in ("", target):
            out.append(f"    {target} = {value}")
        values.append(target)
    return [*out, f"return ({', '.join(values)}{',' if len(values) == 1 else ''})"]


def _emit_grads(operation: Operation, path: Path) -> list[str]:
    rule = operation.rule
    if rule.grads in ((), ("grads",)):
        return []
    out = []
    for grad in rule.grads:
        index = 0 if grad == "grad" else rule.output_names.index(grad.removeprefix("grad_"))
        value = f"grads[{index}]"
        out.append(f"{grad} = {f'widen_half({value})' if path.widened else value}")
        if len(rule.grads) > 1 and not is_sum_over_outputs(operation):
            zeros = f"zero_grad_{'array' if path.on_arrays else 'tensor'}(self, {index})"
            out += [f"if {grad} is None:", f"    {grad} = {zeros}"]
    return out


def is_sum_over_outputs(operation: Operation) -> bool:
    """Whether each line is a sum of terms that read one output's gradient each.

    The terms of an output that nobody used are then left out: zeros in their place would cost as much, and become NaN
    where a term has an infinite factor.
    """
    rule = operation.rule
    return (
        len(rule.grads) > 1
        and not any(_grads_in(expression, rule.grads) for _, expression in rule.assignments)
        and all(
            line.not_implemented is None
            and [len(_grads_in(term, rule.grads)) for term in _terms(line.expression)] == [1] * len(rule.grads)
            and _grads_in(line.expression, rule.grads) == set(rule.grads)
            for line in rule.lines
        )
    )


def _terms(expression: ast.expr) -> list[ast.expr]:
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        return [*_terms(expression.left), *_terms(expression.right)]
    return [expression]


def _grads_in(expression: ast.expr, grads: tuple[str, ...]) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and node.id in grads}


def _sum_of_terms(operation: Operation, line: Line, path: Path) -> list[str]:
    """Add up the terms of the outputs that were used."""
    target = f"grad_of_{line.parameter}"
    out = [f"{target} = None"]
    for term in _terms(line.expression):
        (grad,) = _grads_in(term, operation.rule.grads)
        out += [f"if {grad} is not None:", f"    term = {path.text(term, operation)}"]
        out.append(f"    {target} = term if {target} is None else {target} + term")
    return out


def shared_assignments(operation: Operation) -> list[str]:
    """Assigned names that more than one line reads, in order."""
    counts = {name: 0 for name, _ in operation.rule.assignments}
    for uses in saved_values(operation).of_line.values():
        for name in uses.assignments:
            counts[name] += 1
    return [name for name, _ in operation.rule.assignments if counts[name] > 1]


def _line_value(operation: Operation, line: Line, path: Path, unpacked: set[str]) -> tuple[list[str], str]:
    """The statements that one line needs, and then its value ("" where a statement raises)."""
    if line.not_implemented is not None:
        return [f"raise derivative_not_implemented({line.not_implemented!r})"], ""
    saved = saved_values(operation)
    uses = saved.of_line[line.parameter]
    computed_natively = path.on_arrays and line_function_name(operation, line) in path.native_lines
    reads = _reads(operation, line)
    out: list[str] = []
    for name in saved.tensors():
        if name in uses.values and name not in unpacked:
            once = path.on_arrays and not path.widened and (computed_natively or reads[name] == 1)
            out += _unpack(name, operation, path, read_once=once)
    target = f"grad_of_{line.parameter}"
    if is_sum_over_outputs(operation):
        out += [*line_steps(operation, line, path), *_sum_of_terms(operation, line, path)]
        value = target
    elif computed_natively:
        names = [ast.Name(name, ast.Load()) for name in line_parameters(operation, line) or []]
        given = [path.text(name, operation) for name in names]
        owned = [] if path.widened else [_owns_gradient(operation, line)]
        value = f"{line_function_name(operation, line)}({', '.join([*given, *owned])})"
    elif path.on_arrays and (places := _places_part(line)) is not None:
        value = path.text(places, operation)
    else:
        out += line_steps(operation, line, path)
        value = path.text(line.expression, operation)
    for name in saved.tensors():
        path.inlined.pop(name, None)
    if value == target:
        return out, target
    after = _after_line(operation, line, path)
    return ([*out, f"{target} = {value}", *after], target) if after else (out, value)


def _after_line(operation: Operation, line: Line, path: Path) -> list[str]:
    """Undo broadcasting and promotion of one gradient; round what was computed in float32."""
    target = f"grad_of_{line.parameter}"
    rounding = [f"{target} = rounded({target}, grads[0].dtype)"] if path.widened else []
    if not needs_broadcast(operation):
        return rounding
    place = [p.name for p in operation.inputs].index(line.parameter)
    function = "sum_to_like" if path.on_arrays else "F.sum_to_like"
    summing = ["if self.broadcast is not None:", f"    {target} = {function}({target}, *self.broadcast[{place}])"]
    return [*summing, "else:", f"    {rounding[0]}"] if rounding else summing


def _places_part(line: Line) -> ast.expr | None:
    """A line that puts the gradient among zeros, as the gradient of a part. See Note [Partial gradients]."""
    call = line.expression
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in _PLACING:
        return None
    missing = [ast.Constant(0) for _ in range(_PLACING[ast.unparse(call.func)])]
    return ast.Call(ast.Name("PartialGradient", ast.Load()), [*call.args, *missing], [])


def _owns_gradient(operation: Operation, line: Line) -> str:
    """Whether a line may overwrite the gradient: an owned one that no later line reads and no earlier one returned.

    See Note [Owned gradients].
    """
    lines = operation.rule.lines
    own = lines.index(line)
    others = [i for i, other in enumerate(lines) if i > own or (i < own and not is_fresh(other, operation.rule))]
    return " and ".join(["owned", *[f"edges[{index}] is None" for index in others]])


def line_steps(operation: Operation, line: Line, path: Path, shared: list[str] | None = None) -> list[str]:
    """The assignments that only this line reads."""
    uses = saved_values(operation).of_line[line.parameter]
    shared = shared_assignments(operation) if shared is None else shared
    return [
        f"{name} = {path.text(expression, operation)}"
        for name, expression in operation.rule.assignments
        if name in uses.assignments and name not in shared
    ]


def line_function_name(operation: Operation, line: Line) -> str:
    """The function that computes the gradient of one input."""
    return f"{operation.name}_grad_of_{line.parameter}"


def line_parameters(operation: Operation, line: Line) -> list[str] | None:
    """What that function takes: the gradient and the saved values its line reads; None where it cannot be one."""
    rule = operation.rule
    if rule.kind != "elementwise" or rule.grads != ("grad",) or line.not_implemented is not None:
        return None
    uses = saved_values(operation).of_line[line.parameter]
    if uses.attributes or shared_assignments(operation):
        return None
    order = [*[p.name for p in operation.kernel.parameters], *rule.outputs]
    return ["grad", *[name for name in order if name in uses.values]]


def rounds_often(operation: Operation) -> bool:
    """Whether a rule computes in several steps, or with constants that bfloat16 has no arithmetic for.

    Half-precision gradients are then computed in float32 and rounded once, as PyTorch does.
    """
    rule = operation.rule
    if rule.kind not in ("elementwise", "self_adjoint") or rule.grads != ("grad",):
        return False
    assigned = dict(rule.assignments)
    return any(_steps(line.expression, assigned) > 1 for line in rule.lines if line.not_implemented is None)


def _steps(expression: ast.expr, assigned: dict[str, ast.expr]) -> int:
    steps = 0
    for node in ast.walk(expression):
        if isinstance(node, ast.BinOp):
            steps += 1
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            steps += 0 if fact_of(node.func.attr, "exact") else 2
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            steps += 2
        elif isinstance(node, ast.Name) and node.id in assigned:
            steps += _steps(assigned[node.id], assigned)
    return steps


def _unpack(name: str, operation: Operation, path: Path, *, read_once: bool = False) -> list[str]:
    """Read a saved tensor, its version compared; where one place reads its array, it is read there."""
    if not path.on_arrays:
        return [f'{name} = self.unpack("{name}")']
    parameter = operation.kernel.parameter(name)
    role = parameter.role if parameter is not None else TENSOR
    if role == TENSOR_LIST:
        return [f"{name} = unpack_list(self, {name!r})"]
    checked = [
        f"if {name}._counter is not None and {name}._counter.value != self.saved_{name}_version:",
        f'    {f"{name} = as_saved" if operation.rule.options.get("fused") else "raise_stale"}(self, "{name}")',
    ]
    if role == TENSOR and read_once:
        path.inlined[name] = f"{name}._array"
    else:
        checked.append(f"{name} = {f'widen_half({name}._array)' if path.widened else f'{name}._array'}")
    if role == TENSOR:
        return [f"{name} = self.saved_{name}", *checked]
    return [f"{name} = self.saved_{name}", f"if self.saved_{name}_version >= 0:", *["    " + text for text in checked]]
