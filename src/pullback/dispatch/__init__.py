"""`TorchDispatchMode` and `__torch_dispatch__`: ATen's operations, forward and backward, shown below autograd.

# Note [Dispatch]
A dispatch mode is asked last of all interceptors (Note [Interception]): after function modes, transforms and autocast.
An operation of pullback arrives as a generated function with its arguments.
  1. An operation that stands for several of PyTorch's (a fused linear layer) runs as its parts, which arrive in turn.
  2. `lower` finds the call of ATen's: overload and arguments. The name and the schema say which; where they do not, the
     operation's declaration does (`aten=`).
  3. `call` shows it to the innermost mode, with everything below autograd: nothing is recorded, and the mode itself is
     off. What the mode calls goes to the next mode, then to the arguments' classes, then to pullback's own function.
  4. `record` puts what came back into the graph, as the node that pullback records without a mode.
A backward pass with a mode or a dispatching class around moves Tensors without recording. A node runs the calls that its
operation declares (`backward="tanh_backward(grad, result)"`), else its rule on Tensors, whose operations arrive as above.
With `create_graph=True` it is always the rule, because those calls are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pullback import functions
from pullback.backend.wrapper_array import WrapperArray
from pullback.dispatch import parts_of_fused
from pullback.dispatch.batch_norm import native_batch_norm
from pullback.dispatch.calling import call, dispatching_types
from pullback.dispatch.chains import one_hot
from pullback.dispatch.gradients import accumulate, pull_back
from pullback.dispatch.lowering import lower, operand_of
from pullback.dispatch.recording import record, record_in_place
from pullback.dispatch.templates import run_expression
from pullback.dispatch.views_in_place import view_in_place
from pullback.dispatch.wrapper_tensors import make_wrapper_subclass
from pullback.facts import fact_of
from pullback.functions import unfused
from pullback.modes.interception import dispatch
from pullback.modes.switches import switches
from pullback.tensor.arguments import as_numpy_dtype
from pullback.tensor.tensor_base import TensorBase

COMPOSITES: dict[str, Callable[..., Any]] = {
    "_view_in_place": view_in_place,
    "native_batch_norm": native_batch_norm,
    "one_hot": one_hot,
}
"""Functions that are not operations, and compute on arrays what PyTorch does by operators."""


def ask(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Show an operation to the modes of this thread and the classes of its arguments; NotImplemented if nobody looks."""
    types = dispatching_types((*args, *kwargs.values()))
    if not types and not switches.dispatch_modes:
        return NotImplemented
    operand = operand_of(function)
    operation = operand.operation
    if operation is not None and not switches.records and _gives_back(operation.name, args):
        return args[0]
    if operation is not None and operation.parts and kwargs.get("out") is None:
        values = dict(zip(operand.parameters, args, strict=False))
        return run_expression(operation.parts, _part, {**values, **kwargs})
    if operation is None and (composite := COMPOSITES.get(operand.name)) is not None:
        return composite(*args, **kwargs)
    unrecorded = operation is not None or fact_of(operand.name, "without_gradient") or not switches.records
    if not unrecorded and _require_grad((*args, *kwargs.values())):
        return NotImplemented
    lowered = lower(function, args, {k: v for k, v in kwargs.items() if k != "requires_grad"})
    if lowered is None:
        if operation is not None:
            _refuse_wrappers(operation.name, (*args, *kwargs.values()))
        return NotImplemented
    if operation is None:
        made = call(*lowered)
        return made.requires_grad_() if kwargs.get("requires_grad") else made
    if kwargs.get("out") is not None:
        return call(*lowered)
    generated = getattr(import_module(f"pullback.generated.{operation.family}"), operation.name)
    if operand.in_place:
        made = record_in_place(generated, operation, args, kwargs, lambda: call(*lowered))
    else:
        made = record(generated, operation, args, kwargs, call(*lowered))
    if types:
        _remember(made)
    return made


def _remember(made: Any) -> None:
    """Let backward passes know the node of an operation on instances of dispatching classes."""
    for result in made if isinstance(made, (tuple, list)) else (made,):
        if isinstance(result, TensorBase) and result._edge is not None:
            dispatch.is_recorded = True
            result._edge[0].require_extra().is_dispatched = True


def _gives_back(name: str, args: tuple[Any, ...]) -> bool:
    """Whether an operation of a backward formula has nothing to do, so that PyTorch would not run it."""
    if name == "to_dtype":
        return bool(args[0]._array.dtype == as_numpy_dtype(args[1]))
    return name == "conj" and args[0]._array.dtype.kind not in "cW"


def _refuse_wrappers(name: str, values: tuple[Any, ...]) -> None:
    """An operation that is not a call of ATen's cannot be computed on tensors without values."""
    for value in values:
        if isinstance(value, TensorBase) and type(value._array) is WrapperArray:
            raise NotImplementedError(
                f"{name}: PyTorch has no operator of this name, so {type(value).__name__}.__torch_dispatch__ cannot be "
                "asked for it, and the tensor has no values of its own. Unwrap it first."
            )


def _part(name: str) -> Callable[..., Any]:
    for place in (parts_of_fused, unfused, import_module("pullback.generated"), functions):
        found: Callable[..., Any] | None = getattr(place, name, None)
        if found is not None:
            return found
    raise AssertionError(f"parts= names {name}, which is not an operation")


def _require_grad(values: tuple[Any, ...]) -> bool:
    return any(
        _require_grad(tuple(v)) if isinstance(v, (list, tuple)) else isinstance(v, TensorBase) and v._requires_grad
        for v in values
    )


dispatch.ask, dispatch.pull_back, dispatch.accumulate = ask, pull_back, accumulate

__all__ = ["ask", "make_wrapper_subclass"]
