"""Writes how an operation reads its arguments, and what it says of wrong ones."""

from __future__ import annotations

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


def itself(operation: Operation) -> str:
    """The function inside of its own body, where a parameter may have its name."""
    names = {p.name for p in operation.kernel.parameters}
    return f"F.{operation.name}" if operation.name in names else operation.name


def public_name(operation: Operation) -> str:
    """The function's name in messages: that of the overloaded function of which the operation is one form."""
    return str(operation.rule.options.get("public", operation.name))


def itself_with_arguments(operation: Operation, takes_out: bool) -> str:
    """The function, its positional and its keyword arguments, for whoever is asked to take the call over."""
    positional = [p.name for p in operation.kernel.parameters if not p.keyword_only]
    keywords = [f'"{p.name}": {p.name}' for p in operation.kernel.parameters if p.keyword_only]
    if takes_out:
        keywords.append('"out": out')
    args = f"({', '.join(positional)}{',' if len(positional) == 1 else ''})"
    return f"{itself(operation)}, {args}, {{{', '.join(keywords)}}}"


def ask_foreign_if(operation: Operation, takes_out: bool, test: str, indent: str) -> list[str]:
    """See Note [Foreign arguments]."""
    return [
        f"{indent}if {test}:",
        f"{indent}    return ask_foreign({itself_with_arguments(operation, takes_out)})",
    ]


def _number_beside(operation: Operation, position: int) -> str:
    """The argument after the first, if either may be a number, for the promotion of a number that comes first."""
    second = operation.kernel.parameters[1:2]
    return f", {second[0].name}" if position == 1 and second and second[0].role == TENSOR_OR_NUMBER else ""


def check_tensors(operation: Operation, takes_out: bool) -> list[str]:
    """Refuse what is no tensor and no switch; foreign arguments are asked."""
    out = []
    for position, p in enumerate(operation.kernel.parameters, 1):
        foreign = ask_foreign_if(operation, takes_out, f"is_foreign({p.name})", "        ")
        if p.role == TENSOR:
            given = f"{public_name(operation)!r}, {p.name!r}, {position}, {p.name}{_number_beside(operation, position)}"
            out += [
                f"    if not isinstance({p.name}, TensorBase):",
                *foreign,
                f"        {p.name} = as_tensor_argument({given})",
            ]
        elif p.role == OPTIONAL_TENSOR:
            out += [
                f"    if {p.name} is not None and not isinstance({p.name}, TensorBase):",
                *foreign,
                f"        {p.name} = as_tensor_argument({public_name(operation)!r}, {p.name!r}, {position}, {p.name})",
            ]
        elif p.role == TENSOR_LIST:
            out.append(f"    {p.name} = as_tensor_list({public_name(operation)!r}, {p.name!r}, {position}, {p.name})")
        elif p.role == TENSOR_OR_NUMBER:
            out += [f"    {p.name}_is_tensor = isinstance({p.name}, TensorBase)"]
        elif p.annotation == "bool":
            out += [
                f"    if {p.name} is not False and {p.name} is not True:",
                f"        raise not_a_bool({public_name(operation)!r}, {p.name!r}, {p.name})",
            ]
    return out


def read_plain_arguments(operation: Operation) -> list[str]:
    """Dimensions counted from the front, sizes as tuples, dtypes of the array library."""
    out = []
    for p in operation.kernel.parameters:
        if p.role in (DIM, DIMS):
            optional = " | None" in p.annotation or p.default == "None"
            function = "wrap_dim" if p.role == DIM else "wrap_dims"
            first = operation.kernel.tensors[0]
            ndim = "input_ndim" if first.role == TENSOR_LIST else f"{first.name}._array.ndim"
            if first.role == TENSOR_LIST:
                out.append(f"    input_ndim = {first.name}[0]._array.ndim")
            if p.role == DIM and optional:
                out.append(f"    if {p.name} is not None:")
                out.append(f"        {p.name} = {function}({p.name}, {ndim})")
            else:
                out.append(f"    {p.name} = {function}({p.name}, {ndim})")
        elif p.annotation == "Shape":
            out.append(f"    {p.name} = as_shape({p.name})")
        elif p.annotation.startswith("DType"):
            out.append(f"    {p.name} = as_numpy_dtype({p.name})")
        elif p.annotation.removesuffix(" | None") in ("int", "float", "Scalar"):
            out += _read_number(p)
    return out


def _read_number(p: Parameter) -> list[str]:
    """A number, or an integer, as one of Python's."""
    kind = p.annotation.removesuffix(" | None")
    usual = "float" if kind == "float" or "." in (p.default or "") else "int"
    test = f"type({p.name}) is not {usual}"
    if kind != "int":  # the usual type first: comparing it is cheaper than to look it up
        test += f" and type({p.name}) not in NUMBERS"
    if kind != p.annotation or p.default == "None":
        test += f" and {p.name} is not None"
    return [f"    if {test}:", f"        {p.name} = plain_{'int' if kind == 'int' else 'float'}({p.name})"]


def refusing(operation: Operation, work: list[str]) -> list[str]:
    """The work of an operation that takes more than tensors, with the words for arguments of wrong types around it."""
    only_tensors = all(p.is_tensor or p.annotation == "bool" for p in operation.kernel.parameters)
    if only_tensors and (len(operation.kernel.tensors) < 2 or any("shapes_differ" in line for line in work)):
        return work
    positional = [f"{p.name}: {p.annotation}" for p in operation.kernel.parameters if not p.keyword_only]
    named = [f"{p.name}: {p.annotation}" for p in operation.kernel.parameters if p.keyword_only]
    schema = "; ".join(positional) + ("; *; " + "; ".join(named) if named else "")
    values = ", ".join(p.name for p in operation.kernel.parameters)
    return [
        "    try:",
        *["    " + line for line in work],
        "    except Exception as error:  # see Note [Refusals]",
        f"        raise refused(error, {public_name(operation)!r}, {schema!r}, ({values})) from None",
    ]
