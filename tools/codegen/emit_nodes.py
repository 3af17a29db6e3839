"""Writes the node class of an operation: what it saved, and its rule on arrays and on Tensors."""

from __future__ import annotations

import ast

from tools.codegen.model import TENSOR_LIST, TENSOR_OR_NUMBER, Line, Operation
from tools.codegen.native_kernels import line_function_name, line_parameters
from tools.codegen.render import Library, render
from tools.codegen.saved_values import SavedValues, is_fresh

# Functions that rules call and that round nothing.
_EXACT = set(
    "conj conj_number scaled_by zeros_of tied_to where keep_where drop_where relu_grad abs logical_and logical_or "
    "logical_not isnan isfinite sum_to to_dtype".split()
)
# Functions that put the gradient at its place among zeros, and how many arguments they leave out (a position has no end
# and no step).
_PLACING = {"F.select_back": 2, "F.slice_back": 0}
# PyTorch's inspection attributes keep the name `self` for the first argument.
_PUBLIC_NAMES = {"input": "self"}


def emit_node(operation: Operation, library: Library) -> tuple[list[str], set[tuple[str, str]]]:
    """The lines of the class, and the kernels it imports."""
    rule = operation.rule
    saved = SavedValues(operation)
    imports: set[tuple[str, str]] = set()
    if rule.unimplemented is not None:
        return [], imports
    out = [f"class {rule.class_name}(Node):", f'    """Gradient of {operation.name}."""', ""]
    out.append('    __slots__ = ("__dict__",)')
    body: list[str] = []
    names = saved.tensors() + saved.plain()
    if names:
        body.append(f"    saved_names = {tuple(names)!r}")
        public = {n: str(_public_name(n)) for n in names if _public_name(n) != n}
        if public:
            body.append(f"    public_names = {public!r}")
    fresh = tuple(is_fresh(line) and not _is_sum_over_outputs(operation) for line in rule.lines)
    if any(fresh) and not _has_list(operation):
        body.append(f"    fresh = {fresh!r}")
    if len(rule.output_names) > 1:
        body.append(f"    output_count = {len(rule.output_names)}")
    elif rule.options.get("multi_view"):
        body.append("    output_count: int = 1")
    for name in saved.tensors():
        body += [f"    saved_{name}: Any = None", f"    saved_{name}_version: int = -1"]
    body += [f"    saved_{name}: Any = None" for name in saved.plain()]
    body += [f"    saved_{name}_{attribute}: Any = None" for name, attribute in saved.attributes()]
    if needs_broadcast(operation):
        body.append("    broadcast: bool = False")
        for p in operation.inputs:
            body += [f"    {p.name}_shape: Any = None", f"    {p.name}_dtype: Any = None"]
    if body:
        out += [*body, ""]
    for on_arrays in (True, False):
        out += _emit_apply(operation, saved, library, imports, on_arrays=on_arrays)
    if "::" in rule.node_name:
        out += ["    def name(self) -> str:", f'        return "{rule.node_name}"', ""]
    if saved.tensors():
        out += ["    def release_saved_tensors(self) -> None:", "        self.released = True"]
        out += [f"        self.saved_{name} = None" for name in saved.tensors()]
        out.append("")
    if rule.class_name != rule.node_name:
        short = rule.node_name.rpartition("::")[2]
        out += ["", f'{rule.class_name}.__name__ = {rule.class_name}.__qualname__ = "{short}"', ""]
    return out, imports


def _public_name(name: str) -> str:
    return _PUBLIC_NAMES.get(name, name)


def _has_list(operation: Operation) -> bool:
    return any(p.role == TENSOR_LIST for p in operation.inputs)


def needs_broadcast(operation: Operation) -> bool:
    """Whether gradients may have to be summed to their input's shape or cast to its dtype."""
    return operation.rule.kind == "elementwise" and len(operation.kernel.tensors) > 1


def _emit_apply(
    operation: Operation, saved: SavedValues, library: Library, imports: set[tuple[str, str]], *, on_arrays: bool
) -> list[str]:
    rule = operation.rule
    method = "apply" if on_arrays else "apply_differentiable"
    owned = ", owned: bool = False" if on_arrays else ""
    out = [f"    def {method}(self, grads: Sequence[Any], edges: Edges{owned}) -> Sequence[Any]:"]
    if saved.tensors():
        out += ["        if self.released:", "            raise graph_freed(self.name())"]
    out += _emit_grads(operation, on_arrays=on_arrays)
    if on_arrays and rounds_often(operation):
        out += ["        half = grad.dtype.itemsize == 2", "        if half:", "            grad = widen_half(grad)"]
    out += [f"        {name} = self.saved_{name}" for name in saved.plain()]
    out += [f"        {name}_{attribute} = self.saved_{name}_{attribute}" for name, attribute in saved.attributes()]
    if len(rule.lines) == 1 and rule.lines[0].not_implemented is None:
        block = _line_block(operation, rule.lines[0], saved, library, imports, on_arrays=on_arrays, shared=[])
        test = "if edges.count(None) == len(edges):" if _has_list(operation) else "if edges[0] is None:"
        out += [
            f"        {test}",
            f"            return {'(None,) * len(edges)' if _has_list(operation) else '(None,)'}",
        ]
        out += ["        " + text for text in block]
        result = f"grad_of_{rule.lines[0].parameter}"
        out.append(f"        return {result}" if _has_list(operation) else f"        return ({result},)")
        return [*out, ""]
    shared = _shared_assignments(operation, saved)
    unpacked: set[str] = set()
    for name in shared:
        expression = dict(rule.assignments)[name]
        for tensor in sorted(saved.uses(expression).values & set(saved.tensors())):
            if tensor not in unpacked:
                out += ["        " + text for text in _unpack(tensor, operation, on_arrays=on_arrays)]
                unpacked.add(tensor)
        text, used = render(expression, operation, library, on_arrays=on_arrays)
        imports |= used
        out.append(f"        {name} = {text}")
    for line in rule.lines:
        out.append(f"        grad_of_{line.parameter} = None")
    for index, line in enumerate(rule.lines):
        out.append(f"        if edges[{index}] is not None:")
        block = _line_block(
            operation, line, saved, library, imports, on_arrays=on_arrays, shared=shared, unpacked=frozenset(unpacked)
        )
        out += ["            " + text for text in block]
    out.append(f"        return ({', '.join(f'grad_of_{line.parameter}' for line in rule.lines)},)")
    return [*out, ""]


def _emit_grads(operation: Operation, *, on_arrays: bool) -> list[str]:
    rule = operation.rule
    if rule.grads in ((), ("grads",)):
        return []
    out = []
    names = rule.output_names
    for grad in rule.grads:
        index = 0 if grad == "grad" else names.index(grad.removeprefix("grad_"))
        out.append(f"        {grad} = grads[{index}]")
        if len(rule.grads) > 1 and not _is_sum_over_outputs(operation):
            zeros = f"zero_grad_array(self, {index})" if on_arrays else f"zero_grad_tensor(self, {index})"
            out += [f"        if {grad} is None:", f"            {grad} = {zeros}"]
    return out


def _is_sum_over_outputs(operation: Operation) -> bool:
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


def _sum_of_terms(
    operation: Operation, line: Line, library: Library, imports: set[tuple[str, str]], *, on_arrays: bool
) -> list[str]:
    """Add up the terms of the outputs that were used."""
    target = f"grad_of_{line.parameter}"
    out = [f"{target} = None"]
    for term in _terms(line.expression):
        text, used = render(term, operation, library, on_arrays=on_arrays)
        imports |= used
        (grad,) = _grads_in(term, operation.rule.grads)
        out += [f"if {grad} is not None:", f"    term = {text}"]
        out.append(f"    {target} = term if {target} is None else {target} + term")
    return out


def _shared_assignments(operation: Operation, saved: SavedValues) -> list[str]:
    """Assigned names that more than one line reads, in order."""
    counts = {name: 0 for name, _ in operation.rule.assignments}
    for uses in saved.of_line.values():
        for name in uses.assignments:
            counts[name] += 1
    return [name for name, _ in operation.rule.assignments if counts[name] > 1]


def _line_block(
    operation: Operation, line: Line, saved: SavedValues, library: Library, imports: set[tuple[str, str]], *,
    on_arrays: bool, shared: list[str], unpacked: frozenset[str] = frozenset(),
) -> list[str]:  # fmt: skip
    if line.not_implemented is not None:
        return [f"raise derivative_not_implemented({line.not_implemented!r})"]
    uses = saved.of_line[line.parameter]
    out: list[str] = []
    for name in saved.tensors():
        if name in uses.values and name not in unpacked:
            out += _unpack(name, operation, on_arrays=on_arrays)
    if _is_sum_over_outputs(operation):
        out += _line_steps(operation, line, library, imports, on_arrays=on_arrays, shared=shared)
        return [*out, *_sum_of_terms(operation, line, library, imports, on_arrays=on_arrays)]
    target = f"grad_of_{line.parameter}"
    if on_arrays and line_function_name(operation, line) in library.native_lines:
        arguments = [*(line_parameters(operation, line) or []), _owns_gradient(operation, line)]
        out.append(f"{target} = {line_function_name(operation, line)}({', '.join(arguments)})")
    elif on_arrays and (places := _places_part(line)) is not None:
        text, used = render(places, operation, library, on_arrays=True)
        imports |= used
        out.append(f"{target} = {text}")
    else:
        out += _line_steps(operation, line, library, imports, on_arrays=on_arrays, shared=shared)
        text, used = render(line.expression, operation, library, on_arrays=on_arrays)
        imports |= used
        out.append(f"{target} = {text}")
    if needs_broadcast(operation):
        p = line.parameter
        function = "sum_to_like" if on_arrays else "F.sum_to_like"
        out += ["if self.broadcast:", f"    {target} = {function}({target}, self.{p}_shape, self.{p}_dtype)"]
    if on_arrays and rounds_often(operation):
        test = "elif half:" if needs_broadcast(operation) else "if half:"
        out += [test, f"    {target} = rounded({target}, grads[0].dtype)"]
    return out


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
    others = [i for i, other in enumerate(lines) if i > own or (i < own and not is_fresh(other))]
    return " and ".join(["owned", *[f"edges[{index}] is None" for index in others]])


def _line_steps(
    operation: Operation, line: Line, library: Library, imports: set[tuple[str, str]], *, on_arrays: bool,
    shared: list[str],
) -> list[str]:  # fmt: skip
    """The assignments that only this line reads."""
    uses = SavedValues(operation).of_line[line.parameter]
    out: list[str] = []
    for name, expression in operation.rule.assignments:
        if name in uses.assignments and name not in shared:
            text, used = render(expression, operation, library, on_arrays=on_arrays)
            imports |= used
            out.append(f"{name} = {text}")
    return out


def emit_line_functions(operation: Operation, library: Library, imports: set[tuple[str, str]]) -> list[str]:
    """The lines that are compiled, each as a function on arrays: its text is the compiled kernel's reference."""
    out: list[str] = []
    for line in operation.rule.lines:
        name = line_function_name(operation, line)
        if name not in library.native_lines:
            continue
        parameters = ", ".join(f"{p}: Any" for p in line_parameters(operation, line) or [])
        steps = _line_steps(operation, line, library, imports, on_arrays=True, shared=[])
        text, used = render(line.expression, operation, library, on_arrays=True)
        imports |= used
        out += ["@native", f"def {name}({parameters}, owned: bool = False) -> Any:", *[f"    {step}" for step in steps]]
        out += [f"    return {text}", "", ""]
    return out


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
            steps += 0 if node.func.attr in _EXACT else 2
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            steps += 2
        elif isinstance(node, ast.Name) and node.id in assigned:
            steps += _steps(assigned[node.id], assigned)
    return steps


def _unpack(name: str, operation: Operation, *, on_arrays: bool) -> list[str]:
    if not on_arrays:
        return [f'{name} = self.unpack("{name}")']
    parameter = operation.kernel.parameter(name)
    widen = ["if half:", f"    {name} = widen_half({name})"] if rounds_often(operation) else []
    checked = [
        f"if {name}._counter is not None and {name}._counter.value != self.saved_{name}_version:",
        f'    raise_stale(self, "{name}")',
        f"{name} = {name}._array",
    ]
    if parameter is not None and parameter.role in (TENSOR_OR_NUMBER, "optional tensor"):
        steps = ["    " + text for text in [*checked, *widen]]
        return [f"{name} = self.saved_{name}", f"if self.saved_{name}_version >= 0:", *steps]
    if parameter is not None and parameter.role == TENSOR_LIST:
        return [f"{name} = unpack_list(self, {name!r})"]
    return [f"{name} = self.saved_{name}", *checked, *widen]
