"""Backward passes that dispatch modes see: nodes compute on Tensors, by the operations that PyTorch would call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import pullback.generated as F
from pullback import functions
from pullback.backend.array_module import empty, has_internal_overlap
from pullback.dispatch import chains, parts_of_fused
from pullback.dispatch.arguments import arranged, overload_for
from pullback.dispatch.calling import call
from pullback.dispatch.declarations import backward_lines
from pullback.dispatch.node_classes import operation_of
from pullback.dispatch.overloads import aten
from pullback.dispatch.templates import WORDS, run_expression
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.node import Node
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor, new_tensor


def pull_back(node: Node, grads: Sequence[Any], edges: Sequence[Any]) -> Any:
    """The gradients of a node's inputs, by the calls that its operation declares, else by its rule."""
    former, switches.overrides_disabled = switches.overrides_disabled, True  # a rule is below __torch_function__
    try:
        return _pull_back(node, grads, edges)
    finally:
        switches.overrides_disabled = former


def _pull_back(node: Node, grads: Sequence[Any], edges: Sequence[Any]) -> Any:
    operation = operation_of(node)
    if operation is None or (grads[0] is None and "grads" not in operation.backward):
        return node.apply_differentiable(grads, tuple(edges))
    values = _Saved(node, grads, [edge is not None for edge in edges])
    lines = backward_lines(operation)
    if "contiguous(" in operation.backward:
        values.unpack_outputs(operation)  # what was saved is read before anything is computed
    if lines[0][0] is None:
        together = run_expression(lines[0][1].text, _function, values)
        gradients = list(together) if isinstance(together, (tuple, list)) else [together]
        names = operation.differentiable_inputs
        return [
            None if edge is None else _fitted(node, operation, name, grad)
            for name, grad, edge in zip(names, gradients, edges, strict=False)
        ]
    wanted = {name for name, edge in zip(operation.differentiable_inputs, edges, strict=True) if edge is not None}
    found = {name: run_expression(line.text, _function, values) for name, line in lines if name in wanted}
    return [_fitted(node, operation, n, found[n]) if n in wanted else None for n in operation.differentiable_inputs]


def _fitted(node: Any, operation: Operation, name: str, grad: Any) -> Any:
    """The gradient without the dimensions that broadcasting added."""
    broadcast = getattr(node, "broadcast", None)
    if operation.kind != "elementwise" or broadcast is None:
        return grad
    shape, dtype = broadcast[operation.differentiable_inputs.index(name)]
    grad = F.sum_to(grad, shape)
    return grad if grad._array.dtype == dtype else F.to_dtype(grad, dtype)


class _Saved(dict[str, Any]):
    """What a node saved, by the names of its operation's parameters, read when an expression asks for it."""

    def __init__(self, node: Node, grads: Sequence[Any], output_mask: list[bool]) -> None:
        super().__init__(grad=grads[0], grads=grads, output_mask=output_mask)
        self._node = node

    def unpack_outputs(self, operation: Operation) -> None:
        """Read the results that the node saved."""
        for name in self._node.saved_names:
            if name not in [p[0] for p in operation.parameters]:
                _ = self[name]

    def __missing__(self, name: str) -> Any:
        node = self._node
        told = node.extra.told_dims if node.extra is not None else {}
        if name in told:
            return told[name]
        if name in WORDS and name not in node.saved_names and not hasattr(node, name):
            raise KeyError(name)
        value = node.unpack(name) if name in node.saved_names else None
        self[name] = value if value is not None else self._stand_in(name)
        return self[name]

    def _stand_in(self, name: str) -> Any:
        """Memory in the shape of a tensor that the rule does not read, and that was not saved therefore."""
        node: Any = self._node
        for prefix in (f"saved_{name}", name):
            shape = getattr(node, f"{prefix}_shape") if hasattr(type(node), f"{prefix}_shape") else None
            dtype = getattr(node, f"{prefix}_dtype") if hasattr(type(node), f"{prefix}_dtype") else None
            if shape is not None or dtype is not None:
                return new_tensor(empty(shape or (), self["grad"]._array.dtype if dtype is None else dtype))
        return self._in_columns(name)

    def _in_columns(self, name: str) -> Any:
        """Memory as that of a column-major factor: the gradient of a product is laid out as the factor is."""
        node: Any = self._node
        inputs = OPERATIONS[node.operation].differentiable_inputs
        place = inputs.index(name) if name in inputs else None
        if place is None or node.next_edges[place] is None or not node.is_column_major(name, place):
            return None
        source, number = node.next_edges[place]
        return new_tensor(empty(source.input_metadata(number).shape[::-1], self["grad"]._array.dtype).T)


@cache
def _function(name: str) -> Callable[..., Any]:
    """What a name means in `backward=`: an operator that only backward uses, or a function of pullback's."""
    short = name.partition(".")[0]
    packet = aten(short)
    if packet is not None and "backward" in name:

        def shown(*args: Any, **kwargs: Any) -> Any:
            overload = overload_for(packet, args, kwargs)
            names = [a.name for a in overload._schema.arguments]
            found = arranged(overload._schema, {**dict(zip(names, args, strict=False)), **kwargs}, lenient=True)
            if found is not None and len(found[0]) < len(args) and args[len(found[0])] is None:
                found = args[: len(found[0]) + 1], found[1]  # PyTorch shows a tensor that is not there
            if found is not None:
                told = {a.name for a in overload._schema.arguments if a.type == "Tensor?" and a.kwarg_only}
                found = found[0], {**found[1], **{n: None for n in told if n in kwargs and kwargs[n] is None}}
            return call(overload, *(found or (args, kwargs)))

        return shown
    for place in (parts_of_fused, chains):
        if hasattr(place, name):
            return getattr(place, name)
    if functions.module_of(name) is not None:
        found: Callable[..., Any] = getattr(functions, name)
        return found
    return getattr(F, name, None) or getattr(import_module("pullback"), name)


def accumulate(node: AccumulateGrad, grad: Tensor, owned: bool) -> None:
    """Add a gradient to that of a leaf, as PyTorch does: taken over if nobody else has it, else copied or added."""
    former, switches.overrides_disabled = switches.overrides_disabled, True
    try:
        _accumulate(node.variable, grad, owned)
    finally:
        switches.overrides_disabled = former


def _accumulate(variable: Tensor, grad: Tensor, owned: bool) -> None:
    current = variable._grad
    if current is not None:
        current.add_(grad)
    elif owned and not has_internal_overlap(grad._array) and grad.stride() == variable.stride():
        variable._grad = grad.detach()
    else:
        strides = variable.stride()
        made = grad.new_empty_strided(grad.shape, strides, dtype=grad.dtype, layout=grad.layout, device=grad.device)
        made.copy_(grad)
        variable._grad = made
