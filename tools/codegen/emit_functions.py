"""Writes the function of an operation: interception, promotion, kernel, recording, tangent. Nothing else is on the road."""

from __future__ import annotations

from tools.codegen.emit_arguments import (
    ask_foreign_if,
    check_tensors,
    itself,
    itself_with_arguments,
    public_name,
    read_plain_arguments,
    refusing,
)
from tools.codegen.emit_nodes import needs_broadcast
from tools.codegen.model import (
    DIM,
    DIMS,
    OPTIONAL_TENSOR,
    TENSOR,
    TENSOR_LIST,
    TENSOR_OR_NUMBER,
    Operation,
    Parameter,
)  # fmt: skip
from tools.codegen.saved_values import SavedValues

_TYPES = {
    TENSOR: "Tensor", OPTIONAL_TENSOR: "Tensor | None", TENSOR_OR_NUMBER: "Any", TENSOR_LIST: "Any",
}  # fmt: skip
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
    takes_out = not rule.view and not many and rule.options.get("out", True)
    out = [_signature(operation, bool(takes_out))]
    if operation.kernel.doc:
        out.append(f'    """{operation.kernel.doc.splitlines()[0]}"""')
    for p, alias in _aliases(operation):
        out += [f"    if {alias} is not None:", f"        {p.name} = {alias}"]
    for p in (p for p in _left_open(operation) if p.role != DIMS):  # to which None means all
        out += [f"    if {p.name} is None:", f"        raise missing_arguments({public_name(operation)!r}, {p.name!r})"]
    out += _interception(operation, bool(takes_out))
    if takes_out:
        arguments = ", ".join(_forwarded(p) for p in operation.kernel.parameters)
        out += [
            "    if out is not None:",
            f"        return write_out({public_name(operation)!r}, out, "
            f"{itself(operation)}({arguments}){_read(operation)})",
        ]
    out += check_tensors(operation, bool(takes_out))
    work = [*read_plain_arguments(operation), *_arrays(operation, bool(takes_out)), *_kernel_call(operation)]
    out += refusing(operation, work)
    out += _wrap_results(operation)
    if rule.view or many:
        out += _make_views(operation)
    if operation.differentiable:
        out += _record(operation)
    out += _finish(operation)
    out.append(f"    return {_result(operation)}")
    return [*out, ""]


# These write their results while they still read: out= must not share memory with what they read.
_APART_FROM_OUT = {"gather", "take", "masked_select", "kthvalue", "cat"}


def _read(operation: Operation) -> str:
    """What `out=` must not share memory with, as further arguments."""
    if operation.name not in _APART_FROM_OUT:
        return ""
    tensors = operation.kernel.tensors
    return "".join(f", *{p.name}" if p.role == TENSOR_LIST else f", {p.name}" for p in tensors)


def _result(operation: Operation) -> str:
    if operation.rule.options.get("multi_view"):
        return "results"
    names = operation.rule.output_names
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _forwarded(p: Parameter) -> str:
    return f"{p.name}={p.name}" if p.keyword_only else p.name


def _signature(operation: Operation, takes_out: bool) -> str:
    parts, star = [], False
    for p in operation.kernel.parameters:
        if p.keyword_only and not star:
            parts.append("*")
            star = True
        kind = _TYPES.get(p.role, "Any" if p.role in (DIM, DIMS) else _plain_type(p.annotation))
        default = "" if p.default is None else f" = {p.default}"
        if p.default is None and (p in _left_open(operation) or (has_axis(p) and _may_default(operation, p))):
            kind, default = "Any", " = None"
        parts.append(f"{p.name}: {kind}{default}")
    extras = ["out: Any = None"] if takes_out else []
    extras += [f"{alias}: Any = None" for p, alias in _aliases(operation)]
    if extras:
        parts += extras if star else ["*", *extras]
    returns = "Tensor" if len(operation.rule.output_names) == 1 else "Any"
    if operation.rule.options.get("multi_view"):
        returns = "Any"
    return f"def {operation.name}({', '.join(parts)}) -> {returns}:"


def _may_default(operation: Operation, p: Parameter) -> bool:
    """Whether `dim` can be left to `axis`: nothing that must be given follows it."""
    parameters = operation.kernel.parameters
    return all(q.default is not None or q.keyword_only for q in parameters[parameters.index(p) + 1 :])


def _left_open(operation: Operation) -> list[Parameter]:
    """A required `dim` and what must be given after it: with `axis=` for `dim`, those come by keyword."""
    parameters = operation.kernel.parameters
    dim = next((p for p in parameters if has_axis(p) and p.default is None and not _may_default(operation, p)), None)
    if dim is None:
        return []
    return [p for p in parameters[parameters.index(dim) :] if p.default is None and not p.keyword_only]


def has_axis(p: Parameter) -> bool:
    """Whether a parameter is the dimension for which PyTorch takes `axis=` as well."""
    return p.name == "dim" and p.role in (DIM, DIMS)


def _aliases(operation: Operation) -> list[tuple[Parameter, str]]:
    """NumPy's words that PyTorch accepts as well: axis for dim, keepdims for keepdim."""
    pairs = [(p, "axis") for p in operation.kernel.parameters if has_axis(p)]
    return pairs + [(p, "keepdims") for p in operation.kernel.parameters if pairs and p.name == "keepdim"]


def _plain_type(annotation: str) -> str:
    return annotation if annotation in ("int", "float", "bool", "str", "Scalar") else "Any"


def _interception(operation: Operation, takes_out: bool) -> list[str]:
    out = ["    record = True"] if operation.differentiable else []
    out += [
        "    if process.changed:",
        "        if switches.interceptors or overrides.types:",
        f"            taken = intercept({itself_with_arguments(operation, takes_out)})",
        "            if taken is not NotImplemented:",
        "                return taken",
    ]
    if operation.differentiable:
        out.append("        record = switches.records")
    return out


def _arrays(operation: Operation, takes_out: bool) -> list[str]:
    out = []
    tensors = operation.kernel.tensors
    promote = operation.rule.promote
    for p in tensors:
        a = f"{p.name}_array"
        if p.role == TENSOR:
            out.append(f"    {a} = {p.name}._array")
        elif p.role == OPTIONAL_TENSOR:
            out.append(f"    {a} = None if {p.name} is None else {p.name}._array")
        elif p.role == TENSOR_OR_NUMBER:
            out.append(f"    {a}: Any = {p.name}._array if {p.name}_is_tensor else {p.name}")
        else:
            out.append(f"    {a} = [t._array for t in {p.name}]")
    tensors = tuple(p for p in tensors if p.name not in _MASKS)
    if promote == "none":
        return out
    floating = promote in ("float", "quotient")
    names = [p.name for p in tensors]
    if needs_broadcast(operation):
        out.append("    promoted = False")
    if len(tensors) == 1 and tensors[0].role == TENSOR_LIST:
        out.append(f"    {names[0]}_array = promote_list({names[0]}_array)")
    elif len(tensors) == 1:
        if floating:
            out += [
                f'    if {names[0]}_array.dtype.kind not in "fc":',
                f"        {names[0]}_array = promote_to_float({names[0]}_array)",
            ]
    elif len(tensors) == 2 and tensors[0].role == TENSOR and tensors[1].role in (TENSOR, TENSOR_OR_NUMBER):
        out += _promote_pair(operation, takes_out, floating)
    else:
        function = "promote_many_to_float" if floating else "promote_many"
        targets = ", ".join(f"{n}_array" for n in names)
        out.append(f"    ({targets},), {'promoted' if needs_broadcast(operation) else '_'} = {function}({targets})")
    return out


def _promote_pair(operation: Operation, takes_out: bool, floating: bool) -> list[str]:
    first, second = [p for p in operation.kernel.tensors if p.name not in _MASKS]
    a, b = f"{first.name}_array", f"{second.name}_array"
    function = _PAIR_PROMOTIONS[operation.rule.promote]
    mark = ["        promoted = True"] if needs_broadcast(operation) else []
    same = f"{a}.dtype is not {b}.dtype" + (f' or {a}.dtype.kind not in "fc"' if floating else "")
    if second.role == TENSOR:
        return [f"    if {same}:", f"        {a}, {b} = {function}({a}, {b})", *mark]
    number = f'{a}.dtype.kind != "f" or (type({b}) is not float and type({b}) is not int)'
    return [
        f"    if {second.name}_is_tensor:",
        f"        if {same}:",
        f"            {a}, {b} = {function}({a}, {b})",
        *["    " + text for text in mark],
        f"    elif {number}:",
        *ask_foreign_if(operation, takes_out, f"is_foreign({b})", "        "),
        f"        {b} = as_number_argument({public_name(operation)!r}, {second.name!r}, {b})",
        f"        {a}, {b} = {function}({a}, {b})",
        *mark,
    ]


def _kernel_call(operation: Operation) -> list[str]:
    arguments = []
    for p in operation.kernel.parameters:
        value = f"{p.name}_array" if p.is_tensor else p.name
        arguments.append(f"{p.name}={value}" if p.keyword_only else value)
    call = f"{operation.name}_kernel({', '.join(arguments)})"
    if operation.rule.options.get("multi_view"):
        return [f"    results = tuple([new_tensor(a) for a in {call}])"]
    names = operation.rule.output_names
    if len(names) == 1:
        return _broadcasting_call(operation, call)
    return [f"    {', '.join(f'{n}_value' for n in names)} = {call}"]


def _wrap_results(operation: Operation) -> list[str]:
    names = operation.rule.output_names
    if operation.rule.options.get("multi_view"):
        return []
    if len(names) > 1:
        return [f"    {n} = new_tensor(as_array({n}_value))" for n in names]
    return [
        "    if type(computed) is not ndarray:",
        "        computed = as_array(computed)",
        f"    {names[0]}: Tensor = new(Tensor)",
        f"    {names[0]}._array = computed",
    ]


def _broadcasting_call(operation: Operation, call: str) -> list[str]:
    """The call of a kernel; where shapes broadcast, NumPy's refusal is told in PyTorch's words."""
    arrays = [f"{p.name}_array" for p in operation.kernel.tensors]
    broadcasts = operation.rule.promote != "none" or operation.name.startswith("logical_")  # of any two dtypes
    if len(arrays) < 2 or not broadcasts:
        return [f"    computed: Any = {call}"]
    return [
        "    try:",
        f"        computed: Any = {call}",
        "    except ValueError as error:",
        f"        raise shapes_differ(error, {', '.join(arrays)}) from None",
    ]


def _make_views(operation: Operation) -> list[str]:
    source = operation.kernel.tensors[0].name
    if operation.rule.options.get("multi_view"):
        return ["    for result in results:", f"        make_view(result, {source}, MULTI_OUTPUT)"]
    replay = operation.rule.options.get("view")
    if replay == "replay":
        arguments = ", ".join(["t", *[_forwarded(p) for p in operation.kernel.parameters[1:]]])
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


def _edge(p: Parameter) -> str:
    return f"({p.name}._edge or gradient_edge({p.name})) if {_requires(p)} else None"


def _record(operation: Operation) -> list[str]:
    inputs = operation.inputs
    rule = operation.rule
    out = [f"    if record and ({' or '.join(_requires(p) for p in inputs)}):"]
    lists = [p for p in inputs if p.role == TENSOR_LIST]
    if rule.unimplemented is not None:
        edges = ", ".join(_edge(p) for p in inputs)
        out += ["        node = new_node(NotImplementedNode)", f'        node.operation = "{rule.unimplemented}"']
        out += [f"        node.next_edges = ({edges},)", f"        node.output_count = {len(rule.output_names)}"]
    elif lists:
        out.append(f"        node = new_node({rule.class_name})")
        out.append(f"        node.next_edges = tuple([gradient_edge(t) for t in {lists[0].name}])")
    else:
        edges = ", ".join(_edge(p) for p in inputs)
        out += [f"        node = new_node({rule.class_name})", f"        node.next_edges = ({edges},)"]
    out.append("        node.sequence_nr = next_sequence_nr()")
    out += _metadata(operation)
    if needs_broadcast(operation) and rule.unimplemented is None:
        out += _broadcast(operation)
    saved = SavedValues(operation)
    out += _save(operation, saved)
    out += _attach(operation)
    if saved.tensors():
        out += _save_outputs(operation, saved)
    out += ["        if process.changed:", "            adopt_switches(node)"]
    return out


def _metadata(operation: Operation) -> list[str]:
    names = operation.rule.output_names
    if operation.rule.options.get("multi_view"):
        return ["        node.output_count = len(results)", "        node.output_metadata = metadata_of(results)"]
    if len(names) > 1:
        return [f"        node.output_metadata = metadata_of(({', '.join(names)}))"]
    return ["        node.shape = computed.shape", "        node.dtype = computed.dtype"]


def _broadcast(operation: Operation) -> list[str]:
    tests, stores = [], []
    for p in operation.inputs:
        a = f"{p.name}_array"
        stores_p = [f"node.{p.name}_shape = {p.name}._array.shape", f"node.{p.name}_dtype = {p.name}._array.dtype"]
        if p.role == TENSOR_OR_NUMBER:
            tests.append(f"({p.name}_is_tensor and {a}.shape != node.shape)")
            stores += [f"            if {p.name}_is_tensor:", *[f"                {s}" for s in stores_p]]
        elif p.role == OPTIONAL_TENSOR:
            tests.append(f"({a} is not None and {a}.shape != node.shape)")
            stores += [f"            if {p.name} is not None:", *[f"                {s}" for s in stores_p]]
        else:
            tests.append(f"{a}.shape != node.shape")
            stores += [f"            {s}" for s in stores_p]
    return [f"        if promoted or {' or '.join(tests)}:", "            node.broadcast = True", *stores]


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
        source = "computed" if name == "result" else f"{name}_value" if name in outputs else f"{name}._array"
        if p is not None and p.role == TENSOR_LIST:
            text = f"[t._array.{attribute} for t in {name}]"
        elif p is not None and p.role in (OPTIONAL_TENSOR, TENSOR_OR_NUMBER):
            test = f"{name} is not None" if p.role == OPTIONAL_TENSOR else f"{name}_is_tensor"
            text = f"{source}.{attribute} if {test} else None"
        else:
            text = f"{source}.{attribute}"
        out.append(f"        node.saved_{name}_{attribute} = {text}")
    return out


def _save_input(p: Parameter) -> list[str]:
    version = f"int({p.name}._counter.value) if {p.name}._counter is not None else 0"
    store = [f"node.saved_{p.name} = {p.name}"]
    versioned = f"node.saved_{p.name}_version = {version}"
    if p.role == TENSOR:
        return [*store, versioned.replace("int(", "").replace(".value)", ".value")]
    if p.role == TENSOR_LIST:
        return [f"node.saved_{p.name} = SavedList({p.name})"]
    test = f"{p.name} is not None" if p.role == OPTIONAL_TENSOR else f"{p.name}_is_tensor"
    inline = f"{p.name}._counter.value if {p.name}._counter is not None else 0"
    return [*store, f"if {test}:", f"    node.saved_{p.name}_version = {inline}"]


def _attach(operation: Operation) -> list[str]:
    rule = operation.rule
    if rule.options.get("multi_view"):
        return ["        for index, result in enumerate(results):", "            set_history(result, node, index)"]
    if rule.view:
        return ["        set_history(result, node)"]
    out = []
    for index, (name, differentiable) in enumerate(zip(rule.output_names, rule.differentiable_outputs, strict=True)):
        if differentiable:
            out += [f"        {name}._requires_grad = True", f"        {name}._edge = (node, {index})"]
    return out


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


def _finish(operation: Operation) -> list[str]:
    result = _result(operation)
    out = ["    if process.changed:"]
    if operation.differentiable:
        tensors = ", ".join(p.name for p in operation.inputs)
        arguments = ", ".join(p.name for p in operation.kernel.parameters)
        out += [
            f"        if switches.dual_level >= 0 and tangents_flow({tensors}):",
            f"            carry_tangents({result}, {operation.name}_tangent, ({arguments},), ({tensors},))",
        ]
    out.append(
        f"        note_inference({result})" if not operation.rule.view else f"        note_view_inference({result})"
    )
    return out
