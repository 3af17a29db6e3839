"""Writes how an operation reads its arguments, and where it lets the slow road look at them."""

from __future__ import annotations

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


def own_name(operation: Operation) -> str:
    """The word for the function inside of its own body, where a parameter may have its name."""
    names = {p.name for p in operation.kernel.parameters}
    return f"F.{operation.name}" if operation.name in names else operation.name


def with_keywords(p: Parameter) -> str:
    """A parameter handed on."""
    return f"{p.name}={p.name}" if p.keyword_only else p.name


def listed(names: list[str]) -> str:
    """A tuple of names."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def argument_tests(operation: Operation) -> list[str]:
    """The tests that lead off the fast path. See Note [Fast path]."""
    tests = ["process.diverted"]
    if operation.takes_out:
        tests.append("out is not None")
    tests += [f"{p.name} is None" for p in left_open(operation)]
    for p in operation.kernel.parameters:
        if p.role == TENSOR:
            tests.append(f"not isinstance({p.name}, TensorBase)")
        elif p.role == OPTIONAL_TENSOR:
            tests.append(f"({p.name} is not None and not isinstance({p.name}, TensorBase))")
        elif p.annotation == "bool":
            tests.append(f"type({p.name}) is not bool")
    return tests


def left_open(operation: Operation) -> list[Parameter]:
    """Parameters that must be given, though the signature has None for them: see `may_be_left_open`."""
    return [p for p in _after_dim(operation) if p.role != DIMS]  # to which None means all


def may_be_left_open(operation: Operation, p: Parameter) -> bool:
    """Whether a required parameter has None in the signature, since `axis=` may stand for `dim` in a call."""
    return p in _after_dim(operation) or (_is_dim(p) and _may_default(operation, p))


def _is_dim(p: Parameter) -> bool:
    return p.name == "dim" and p.role in (DIM, DIMS)


def _may_default(operation: Operation, p: Parameter) -> bool:
    """Whether `dim` can be left to `axis`: nothing that must be given follows it."""
    parameters = operation.kernel.parameters
    return all(q.default is not None or q.keyword_only for q in parameters[parameters.index(p) + 1 :])


def _after_dim(operation: Operation) -> list[Parameter]:
    """A required `dim` and what must be given after it: with `axis=` for `dim`, those come by keyword."""
    parameters = operation.kernel.parameters
    dim = next((p for p in parameters if _is_dim(p) and p.default is None and not _may_default(operation, p)), None)
    if dim is None:
        return []
    return [p for p in parameters[parameters.index(dim) :] if p.default is None and not p.keyword_only]


def read_lists(operation: Operation) -> list[str]:
    """Lists of tensors, and what may be a tensor or a number."""
    out = []
    for position, p in enumerate(operation.kernel.parameters, 1):
        if p.role == TENSOR_LIST:
            out.append(f"    {p.name} = as_tensor_list({operation.public!r}, {p.name!r}, {position}, {p.name})")
        elif p.role == TENSOR_OR_NUMBER:
            out.append(f"    {p.name}_is_tensor = isinstance({p.name}, TensorBase)")
    return out


def read_plain_arguments(operation: Operation) -> list[str]:
    """Dimensions counted from the front, sizes as tuples, dtypes of the array library."""
    out = []
    for p in operation.kernel.parameters:
        if p.role in (DIM, DIMS):
            optional = " | None" in p.annotation or p.default == "None"
            function = "wrap_dim" if p.role == DIM else "wrap_dims"
            first = operation.kernel.tensors[0]
            ndim = f"{first.name}[0]._array.ndim" if first.role == TENSOR_LIST else f"{first.name}._array.ndim"
            if p.role == DIM and optional:
                out.append(f"{p.name} = None if {p.name} is None else {function}({p.name}, {ndim})")
            else:
                out.append(f"{p.name} = {function}({p.name}, {ndim})")
        elif p.annotation == "Shape":
            out.append(f"{p.name} = as_shape({p.name})")
        elif p.annotation.startswith("DType"):
            out.append(f"{p.name} = as_numpy_dtype({p.name})")
        elif p.annotation.removesuffix(" | None") in ("int", "float", "Scalar"):
            out += _read_number(p)
    return out


def _read_number(p: Parameter) -> list[str]:
    """A number, or an integer, as one of Python's."""
    kind = p.annotation.removesuffix(" | None")
    usual = "float" if kind == "float" or "." in (p.default or "") else "int"
    test = f"type({p.name}) is {usual}"
    if kind != "int":  # the usual type first: comparing it is cheaper than to look it up
        test += f" or type({p.name}) in NUMBERS"
    if kind != p.annotation or p.default == "None":
        test += f" or {p.name} is None"
    return [f"{p.name} = {p.name} if {test} else plain_{'int' if kind == 'int' else 'float'}({p.name})"]


def refusing(operation: Operation, work: list[str], call: str) -> list[str]:
    """The work and the kernel's call, with the words for wrong arguments around what may fail. See Note [Refusals]."""
    if operation.only_tensors and operation.broadcasts:
        before, tried, kind = work, [call], "(ValueError, MemoryError)"
    elif operation.only_tensors and len(operation.kernel.tensors) < 2 and not operation.kernel.explains_failure:
        before, tried, kind = work, [call], "MemoryError"
    else:
        before, tried, kind = [], [*work, call], "Exception"
    out = ["    " + text for text in before]
    out += ["    try:", *["        " + text for text in tried], f"    except {kind} as error:"]
    out.append(f"        raise refuse({operation.name!r}, error, locals()) from None")
    return out
