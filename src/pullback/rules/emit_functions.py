"""Writes the function of an operation: the fast path through promotion, kernel and recording.

# Note [Fast path]
One test stands in front: whether some switch diverts operations, `out=` is given, or an argument is not what the fast
path takes. Then `divert` looks closer: it returns what somebody else computed, or PROCEED. Another stands at the end:
where a switch is on that asks something of results, `finish` does it. Both read the operation's record and are the same
for all (recording/slow_road.py). Grad mode does neither: an operation looks at it when one of its tensors requires grad.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.rules.emit_apply import needs_broadcast
from pullback.rules.emit_arguments import (
    argument_tests,
    left_open,
    listed,
    may_be_left_open,
    own_name,
    read_lists,
    read_plain_arguments,
    refusing,
    with_keywords,
)
from pullback.rules.model import (
    DIM,
    DIMS,
    OPTIONAL_TENSOR,
    TENSOR,
    TENSOR_LIST,
    TENSOR_OR_NUMBER,
    Operation,
    Parameter,
)  # fmt: skip
from pullback.rules.saved_values import SavedValues, saved_values

_TYPES = {
    TENSOR: "Tensor", OPTIONAL_TENSOR: "Tensor | None", TENSOR_OR_NUMBER: "Any", TENSOR_LIST: "Any",
}  # fmt: skip
_WIDTH = 120
# Tensors of bools that choose between others: they take no part in promotion.
_MASKS = ("condition", "mask")
_PAIR_PROMOTIONS = {
    "common": "promote_arrays", "float": "promote_arrays_to_float", "subtraction": "promote_for_subtraction",
    "product": "promote_for_product", "quotient": "promote_for_quotient",
}  # fmt: skip


def emit_function(operation: Operation) -> list[str]:
    """The lines of the function."""
    rule = operation.rule
    many = rule.options.get("multi_view")
    out = [_signature(operation)]
    if operation.kernel.doc:
        out += _docstring(operation.kernel.doc)
    for p, alias in _aliases(operation):
        out += [f"    if {alias} is not None:", f"        {p.name} = {alias}"]
    name, result = operation.name, _result(operation)
    taken = f"        if (taken := divert({name!r}, {{}}{', out' if operation.takes_out else ''})) is not PROCEED:"
    out += [
        f"    if {' or '.join(argument_tests(operation))}:",
        _with_values(operation, taken),
        "            return taken",
    ]
    out += read_lists(operation)
    work = [*read_plain_arguments(operation), *_arrays(operation)]
    if operation.kernel.has_check:
        work.append(f"{name}_check({_kernel_arguments(operation)})")
    out += refusing(operation, work, _kernel_call(operation))
    out += _wrap_results(operation)
    if rule.view or many:
        out += _make_views(operation)
    out += _record(operation) if operation.differentiable else _note_cut(operation)
    out.append(
        _with_values(operation, f"    return finish({name!r}, {result}, {{}}) if process.finishing else {result}")
    )
    return [*out, ""]


def _docstring(text: str) -> list[str]:
    """The lines of a docstring inside of a function."""
    lines = [f'"""{line}' if number == 0 else line for number, line in enumerate(text.splitlines())]
    lines = [*lines[:-1], f'{lines[-1]}"""'] if len(lines) == 1 else [*lines, '"""']
    return [f"    {line}" if line else "" for line in lines]


def _with_values(operation: Operation, text: str) -> str:
    """A line with the arguments put in: as a tuple where they fit, else as the local variables, which is slower."""
    values = text.format(listed([p.name for p in operation.kernel.parameters]))
    return values if len(values) <= _WIDTH else text.format("locals()")


def _result(operation: Operation) -> str:
    if operation.rule.options.get("multi_view"):
        return "results"
    names = operation.rule.output_names
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _signature(operation: Operation) -> str:
    parts, star = [], False
    for p in operation.kernel.parameters:
        if p.keyword_only and not star:
            parts.append("*")
            star = True
        kind = _TYPES.get(p.role, "Any" if p.role in (DIM, DIMS) else _plain_type(p.annotation))
        default = "" if p.default is None else f" = {p.default}"
        if p.default is None and may_be_left_open(operation, p):
            kind, default = "Any", " = None"
        parts.append(f"{p.name}: {kind}{default}")
    extras = ["out: Any = None"] if operation.takes_out else []
    extras += [f"{alias}: Any = None" for p, alias in _aliases(operation)]
    if extras:
        parts += extras if star else ["*", *extras]
    returns = "Tensor" if len(operation.rule.output_names) == 1 else "Any"
    if operation.rule.options.get("multi_view"):
        returns = "Any"
    return f"def {operation.name}({', '.join(parts)}) -> {returns}:"


def has_axis(p: Parameter) -> bool:
    """Whether a parameter is the dimension for which PyTorch takes `axis=` as well."""
    return p.name == "dim" and p.role in (DIM, DIMS)


def _aliases(operation: Operation) -> list[tuple[Parameter, str]]:
    """NumPy's words that PyTorch accepts as well: axis for dim, keepdims for keepdim."""
    pairs = [(p, "axis") for p in operation.kernel.parameters if has_axis(p)]
    return pairs + [(p, "keepdims") for p in operation.kernel.parameters if pairs and p.name == "keepdim"]


def _plain_type(annotation: str) -> str:
    return annotation if annotation in ("int", "float", "bool", "str", "Scalar") else "Any"


def _array(p: Parameter) -> str:
    """The array, or arrays, of one argument."""
    if p.role == TENSOR:
        return f"{p.name}._array"
    if p.role == OPTIONAL_TENSOR:
        return f"None if {p.name} is None else {p.name}._array"
    if p.role == TENSOR_OR_NUMBER:
        return f"{p.name}._array if {p.name}_is_tensor else {p.name}"
    return f"[t._array for t in {p.name}]"


def _has_own_array(operation: Operation, p: Parameter) -> bool:
    """Whether the array of an argument is given a name: where it may be promoted, or compared with the result's."""
    return p.is_tensor and p.name not in _MASKS and (operation.rule.promote != "none" or needs_broadcast(operation))


def _arrays(operation: Operation) -> list[str]:
    """The arrays of the tensors, promoted."""
    tensors = tuple(p for p in operation.kernel.tensors if _has_own_array(operation, p))
    promote = operation.rule.promote
    kinds = ["" if p.role in (TENSOR, TENSOR_LIST) else ": Any" for p in tensors]
    out = [f"{p.name}_array{kind} = {_array(p)}" for p, kind in zip(tensors, kinds, strict=True)]
    if promote == "none":
        return out
    floating = promote in ("float", "quotient")
    names = [p.name for p in tensors]
    if needs_broadcast(operation):
        out.append("promoted = False")
    if len(tensors) == 1 and tensors[0].role == TENSOR_LIST:
        out.append(f"{names[0]}_array = promote_list({names[0]}_array)")
    elif len(tensors) == 1:
        if floating:
            out += [
                f'if {names[0]}_array.dtype.kind not in "fc":',
                f"    {names[0]}_array = promote_to_float({names[0]}_array)",
            ]
    elif len(tensors) == 2 and tensors[0].role == TENSOR and tensors[1].role in (TENSOR, TENSOR_OR_NUMBER):
        out += _promote_pair(operation, floating)
    else:
        function = "promote_many_to_float" if floating else "promote_many"
        targets = ", ".join(f"{n}_array" for n in names)
        promotion = f"({targets}), {'promoted' if needs_broadcast(operation) else '_'} = {function}({targets})"
        if all(p.role in (TENSOR, OPTIONAL_TENSOR) for p in tensors):
            out += [f"if {_differ(tensors, floating)}:", f"    {promotion}"]
        else:
            out.append(promotion)
    return out


def _differ(tensors: Sequence[Parameter], floating: bool) -> str:
    """The test for arrays that have to be promoted."""
    first = f"{tensors[0].name}_array.dtype"
    tests = []
    for p in tensors[1:]:
        test = f"{first} is not {p.name}_array.dtype"
        tests.append(f"({p.name} is not None and {test})" if p.role == OPTIONAL_TENSOR else test)
    return " or ".join([*tests, f'{first}.kind not in "fc"'] if floating else tests)


def _promote_pair(operation: Operation, floating: bool) -> list[str]:
    first, second = [p for p in operation.kernel.tensors if p.name not in _MASKS]
    a, b = f"{first.name}_array", f"{second.name}_array"
    function = _PAIR_PROMOTIONS[operation.rule.promote]
    mark = ["    promoted = True"] if needs_broadcast(operation) else []
    differ = _differ((first, second), floating)
    if second.role == TENSOR:
        return [f"if {differ}:", f"    {a}, {b} = {function}({a}, {b})", *mark]
    out = ", out" if operation.takes_out else ""
    number = f'{a}.dtype.kind != "f" or (type({b}) is not float and type({b}) is not int)'
    return [
        f"if {second.name}_is_tensor:",
        f"    if {differ}:",
        f"        {a}, {b} = {function}({a}, {b})",
        *["    " + text for text in mark],
        f"elif {number}:",
        f"    if is_foreign({b}):",
        f"        return ask_foreign_of({operation.name!r}, locals(){out})",
        f"    {a}, {b} = {function}({a}, as_number_argument({operation.public!r}, {second.name!r}, {b}))",
        *mark,
    ]


def _kernel_arguments(operation: Operation) -> str:
    arguments = []
    for p in operation.kernel.parameters:
        value = f"{p.name}_array" if _has_own_array(operation, p) else _array(p) if p.is_tensor else p.name
        arguments.append(f"{p.name}={value}" if p.keyword_only else value)
    return ", ".join(arguments)


def _kernel_call(operation: Operation) -> str:
    call = f"{operation.name}_kernel({_kernel_arguments(operation)})"
    if operation.rule.options.get("multi_view"):
        return f"results = tuple([new_tensor(a) for a in {call}])"
    names = operation.rule.output_names
    if len(names) == 1:
        return f"computed: Any = {call}"
    return f"{', '.join(f'{n}_value' for n in names)} = {call}"


def _wrap_results(operation: Operation) -> list[str]:
    names = operation.rule.output_names
    if operation.rule.options.get("multi_view"):
        return []
    if len(names) > 1:
        return [f"    {n} = new_tensor(as_array({n}_value))" for n in names]
    return [
        f"    {names[0]}: Tensor = new(Tensor)",
        f"    {names[0]}._array = computed = computed if type(computed) is ndarray else as_array(computed)",
    ]


def _make_views(operation: Operation) -> list[str]:
    source = operation.kernel.tensors[0].name
    if operation.rule.options.get("multi_view"):
        return ["    for result in results:", f"        make_view(result, {source}, MULTI_OUTPUT)"]
    replay = operation.rule.options.get("view")
    if replay == "replay":
        arguments = ", ".join(["t", *[with_keywords(p) for p in operation.kernel.parameters[1:]]])
        return [f"    make_view(result, {source}, replay=lambda t: {operation.name}({arguments}))"]
    return [f"    make_view(result, {source})"]


def _requires(p: Parameter) -> str:
    if p.role == TENSOR:
        return f"{p.name}._requires_grad"
    if p.role == OPTIONAL_TENSOR:
        return f"({p.name} is not None and {p.name}._requires_grad)"
    if p.role == TENSOR_OR_NUMBER:
        return f"({p.name}_is_tensor and {p.name}._requires_grad)"
    return f"any([t._requires_grad for t in {p.name}])"


def _cut(operation: Operation, kind: str | None, inputs: Sequence[Parameter]) -> str:
    """The call that notes the end of a gradient."""
    several = len(operation.rule.output_names) > 1 or operation.rule.options.get("multi_view")
    result = "None" if several else operation.rule.output_names[0]
    given = ", ".join(f"*{p.name}" if p.role == TENSOR_LIST else p.name for p in inputs)
    return f"note_cut({kind!r}, {result}, {given})"


def _note_cut(operation: Operation) -> list[str]:
    """Note that an operation without a derivative ends the gradients of its inputs."""
    inputs = [p for p in operation.kernel.tensors if p.name not in _MASKS]
    if not inputs:
        return []
    required = " or ".join(_requires(p) for p in inputs)
    return [f"    if {required}:", f"        {_cut(operation, operation.name, inputs)}"]


def _record(operation: Operation) -> list[str]:
    """Record the operation: a new node at the results, what it saves, and its edges."""
    inputs = operation.inputs
    required = " or ".join(_requires(p) for p in inputs)
    # Where recording is off, it is noted that a gradient ends here. See Note [Cuts].
    records = f"not process.changed or switches.records or {_cut(operation, None, inputs)}"
    out = [f"    if {required if len(inputs) == 1 else f'({required})'} and ({records}):"]
    lists = [p for p in inputs if p.role == TENSOR_LIST]
    if lists:
        edges = f"tuple([gradient_edge(t) for t in {lists[0].name}])"
    elif len(inputs) == 1:
        edges = f"({inputs[0].name}._edge or gradient_edge({inputs[0].name}),)"
    else:
        each = [f"({p.name}._edge or gradient_edge({p.name})) if {_requires(p)} else None" for p in inputs]
        edges = f"({', '.join(each)})"
    if operation.rule.options.get("refuses_integers"):
        out.append(f"        require_float({operation.rule.output_names[0]})")
    missing = operation.rule.unimplemented
    kind = operation.rule.class_name if missing is None else "NotImplementedNode"
    out += [f"        node: Any = new_node({kind})", f"        node.next_edges = {edges}"]
    if missing is not None:
        outputs = len(operation.rule.output_names)
        out.append(f"        node.operation, node.output_count = {missing!r}, {outputs}")
    out += [f"        {text}" for text in _attach(operation)]
    if needs_broadcast(operation) and missing is None:
        out += _broadcast(operation)
    if operation.rule.options.get("gives") == "positions":
        out.append(f"        note_cut({operation.name!r}, {operation.rule.output_names[-1]}, {inputs[0].name})")
    saved = saved_values(operation)
    return [*out, *_save(operation, saved), *_save_outputs(operation, saved)]


def _attach(operation: Operation) -> list[str]:
    """Make the results outputs of the node."""
    rule = operation.rule
    names = rule.output_names
    if rule.options.get("multi_view"):
        return ["attach_views(node, results)"]
    if rule.view:
        return ["attach_view(node, result)"]
    if len(names) == 1:
        metadata = "node.sequence_nr, node.shape, node.dtype = next_sequence_nr(), computed.shape, computed.dtype"
    else:
        metadata = f"node.sequence_nr, node.output_metadata = next_sequence_nr(), metadata_of({_result(operation)})"
    places = [place for place, differentiable in enumerate(rule.differentiable_outputs) if differentiable]
    return [metadata, *[f"{names[i]}._requires_grad, {names[i]}._edge = True, (node, {i})" for i in places]]


def _broadcast(operation: Operation) -> list[str]:
    tests = []
    for p in operation.inputs:
        test = f"{p.name}_array.shape != computed.shape"
        if p.role == TENSOR_OR_NUMBER:
            test = f"({p.name}_is_tensor and {test})"
        elif p.role == OPTIONAL_TENSOR:
            test = f"({p.name} is not None and {test})"
        tests.append(test)
    inputs = listed([p.name for p in operation.inputs])
    return [
        f"        if promoted or {' or '.join(tests)}:",
        f"            node.broadcast = shapes_and_dtypes({inputs})",
    ]


def _save(operation: Operation, saved: SavedValues) -> list[str]:
    out = []
    outputs = set(operation.rule.outputs)
    everything = [line.parameter for line in operation.rule.lines]
    for name in saved.tensors():
        if name in outputs:
            continue
        p = operation.kernel.parameter(name)
        assert p is not None
        readers = saved.readers(name)
        indent = "        "
        if set(readers) != set(everything):
            tests = " or ".join(_requires(q) for q in operation.inputs if q.name in readers)
            out.append(f"        if {tests}:")
            indent = "            "
        out += [indent + text for text in _save_input(p)]
    out += [f"        node.saved_{name} = {name}" for name in saved.plain()]
    for name, attribute in saved.attributes():
        p = operation.kernel.parameter(name)
        source = "computed" if name == "result" else f"{name}._array"
        if p is not None and attribute == "dtype" and _may_widen(operation, p):
            each = "{0}._array.dtype if {0}._extra is None else gradient_dtype({0}, computed.dtype)"
            text = f"[{each.format('t')} for t in {name}]" if p.role == TENSOR_LIST else each.format(name)
        elif p is not None and p.role == TENSOR_LIST:
            text = f"[t._array.{attribute} for t in {name}]"
        elif p is not None and p.role in (OPTIONAL_TENSOR, TENSOR_OR_NUMBER):
            test = f"{name} is not None" if p.role == OPTIONAL_TENSOR else f"{name}_is_tensor"
            text = f"{source}.{attribute} if {test} else None"
        else:
            text = f"{source}.{attribute}"
        out.append(f"        node.saved_{name}_{attribute} = {text}")
    return out


def _may_widen(operation: Operation, p: Parameter) -> bool:
    """Whether the result may be wider than the tensor, by promotion or `dtype=`, and its gradient is as wide at first."""
    if operation.rule.kind != "linear" or operation.rule.module == "scans":  # whose gradients PyTorch casts
        return False
    wanted = operation.kernel.parameter("dtype")
    return operation.rule.promote == "common" if p.role == TENSOR_LIST else wanted is not None and wanted.keyword_only


def _save_input(p: Parameter) -> list[str]:
    store = f"node.saved_{p.name} = {p.name}"
    versioned = f"node.saved_{p.name}_version = {p.name}._counter.value if {p.name}._counter is not None else 0"
    if p.role == TENSOR:
        return [store, versioned]
    if p.role == TENSOR_LIST:
        return [f"node.saved_{p.name} = SavedList({p.name})"]
    test = f"{p.name} is not None" if p.role == OPTIONAL_TENSOR else f"{p.name}_is_tensor"
    return [store, f"if {test}:", f"    {versioned}"]


def _save_outputs(operation: Operation, saved: SavedValues) -> list[str]:
    out = []
    names = operation.rule.output_names
    for name in saved.tensors():
        if name in operation.rule.outputs:
            out += [
                f"        node.saved_{name} = SavedOutput({name}, {names.index(name)})",
                f"        node.saved_{name}_version = 0",
            ]
    return out


def emit_in_place(operation: Operation) -> list[str]:
    """The lines of the in-place form."""
    parameters = operation.kernel.parameters
    parts, star, after_dim = [], False, False
    for p in parameters:
        if p.keyword_only and not star:
            parts.append("*")
            star = True
        after_dim = after_dim or has_axis(p)  # what must be given from there on is missed by the function itself
        kind = "Tensor" if p.role == TENSOR and not after_dim else "Any"
        default = "None" if p.default is None and after_dim else p.default
        parts.append(f"{p.name}: {kind}" + ("" if default is None else f" = {default}"))
    if after_dim:
        parts += ["axis: Any = None"] if star else ["*", "axis: Any = None"]
    out = [f"def {operation.name}_({', '.join(parts)}) -> Tensor:", f'    """In-place version of {operation.name}."""']
    if after_dim:
        out += ["    if axis is not None:", "        dim = axis"]
    test = ""
    if can_overwrite(operation):
        operands = ", ".join(p.name for p in parameters)
        test = f"{parameters[0].name} if overwrite({operation.name}_overwriting, {operands}) else "
    given = ", ".join([own_name(operation), parameters[0].name, *[with_keywords(p) for p in parameters[1:]]])
    return [*out, f"    return {test}in_place({given})"]


def can_overwrite(operation: Operation) -> bool:
    """Whether the kernel makes each element of its result from the same elements of its tensors, and from numbers."""
    first, *others = operation.kernel.parameters
    return (
        operation.rule.kind == "elementwise"
        and first.role == TENSOR
        and not {p.name for p in others} & {"condition", "mask"}
        and all(p.role in (TENSOR, TENSOR_OR_NUMBER) or p.annotation in ("Scalar", "float") for p in others)
    )


_RARE = ("vectors", "draws", "public", "aten", "backward", "parts")


def record_of(operation: Operation) -> tuple[tuple[object, ...], dict[str, object]]:
    """What the registry keeps of an operation: the values of its record, and those by name that few operations have."""
    kernel, rule = operation.kernel, operation.rule
    facts = (
        operation.name, rule.kind, rule.module, tuple((p.name, p.role, p.keyword_only) for p in kernel.parameters),
        tuple(p.name for p in kernel.tensors), tuple(p.name for p in operation.inputs),
        tuple(line.parameter for line in rule.lines if line.not_implemented),
        bool(rule.view or rule.options.get("multi_view")), rule.in_place, len(rule.output_names),
        operation.structure, rule.promote, operation.public, tuple(p.annotation for p in kernel.parameters),
        tuple(p.name for p in left_open(operation)), operation.takes_out, operation.only_tensors, operation.broadcasts,
    )  # fmt: skip
    return facts, {name: rule.options[name] for name in _RARE if name in rule.options}
