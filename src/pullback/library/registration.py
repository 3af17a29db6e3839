"""What can be registered for operators by their names: `torch.library.register_autograd` and its like, and `opcheck`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.dispatch.overloads import OpOverload, OpOverloadPacket
from pullback.library.custom_op import CustomOpDef, find_custom_op
from pullback.library.operator_namespaces import LibraryOverload, find_defined, make_library_operator, ops
from pullback.tensor.tensor import Tensor

__all__ = [
    "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_vmap",
]  # fmt: skip


def _find(op: Any) -> CustomOpDef | LibraryOverload:
    """The operator to register for, given or named.

    Where compiled operators were asked for and refused, the operator may have been among them: registrations for it
    are taken and come to nothing, so that a library which goes on without its operators can be imported.
    """
    if isinstance(op, (CustomOpDef, LibraryOverload)):
        return op
    name = str(op)
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        name = "::".join(name.split(".")[:2])
    found = find_custom_op(name) or find_defined(name)
    if found is not None:
        return found
    if ops.refused_libraries:
        namespace, _, short = name.partition("::")
        return make_library_operator(namespace, short)
    raise RuntimeError(f"operator {name} does not exist: define it first, with custom_op() or Library.define()")


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Give an operator, named or given, a backward."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, **options: Any) -> Any:
    """Give an operator a function that only makes the outputs' shapes."""
    return _find(op).register_fake if func is None else _find(op).register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an operator an implementation for a device type."""
    return _find(op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an operator a batching rule."""
    return _find(op).register_vmap(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Run an operator on inputs of a given dtype inside of autocast."""
    _find(op).register_autocast(device_type, cast_inputs)


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, test_utils: Any = None,
    raise_exception: bool = True, atol: float | None = None, rtol: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """Check that an operator leaves its inputs alone unless it says so, and that its gradient can be computed."""
    from pullback.testing import assert_close  # lazy: only the check needs it

    operator = _find(op)
    results: dict[str, str] = {}
    copies = [a.detach().clone() if isinstance(a, Tensor) else a for a in args]
    output = operator(*args, **(kwargs or {}))
    names = operator._signature.parameters if operator._signature is not None else ()
    for parameter, before, after in zip(names, copies, args, strict=False):
        if isinstance(after, Tensor) and parameter not in getattr(operator, "_mutated", ()):
            assert_close(
                after.detach(),
                before,
                msg=f"{operator._qualname} modified {parameter}, but mutates_args does not say so",
            )
    results["test_schema"] = "SUCCESS"
    outputs = [
        o for o in (output if isinstance(output, tuple) else (output,)) if isinstance(o, Tensor) and o.requires_grad
    ]
    if outputs:
        sum(o.sum() for o in outputs).backward()
    results["test_autograd_registration"] = "SUCCESS"
    return results
