"""The node classes of operations, found by operation, and run alone for ATen's `..._backward` operators."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from pullback.backend.array_module import as_array
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.node import Node, new_node
from pullback.tensor.tensor import Tensor, new_tensor


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def node_class(operation: Operation) -> Any:
    """The class of the nodes that an operation records."""
    module = import_module(f"pullback.generated.{operation.family}")
    camel = _camel(operation.name)
    return getattr(module, f"{camel}Node", None) or getattr(module, f"{camel}Backward0")


@cache
def _operations() -> dict[type, Operation]:
    declared = [o for o in OPERATIONS.values() if o.kind != "non_differentiable" and o.backward]
    return {node_class(o): o for o in declared}


def operation_of(node: Node) -> Operation | None:
    """The operation that recorded a node, if it declares what its backward is."""
    return _operations().get(type(node))


def pull_back_alone(cls: Any, operation: Operation, parameter: str | None, values: dict[str, Any]) -> Any:
    """Compute gradients by a node that is made of the values alone; of one input, or a tuple for all."""
    node = new_node(cls)
    inputs = operation.differentiable_inputs
    mask = values.get("output_mask") or [True] * len(inputs)
    if parameter is not None:
        mask = [name == parameter for name in inputs]
    placeholder = new_node(Node)
    edges = tuple([(placeholder, 0) if wanted else None for wanted in mask])
    for name in node.saved_names:
        _set(node, name, values.get(name))
    for name, value in values.items():
        base, _, attribute = name.partition(".")
        if attribute:
            _set_attribute(node, base, attribute, value)
        elif isinstance(value, Tensor):
            for attribute in ("shape", "dtype"):
                _set_attribute(node, name, attribute, getattr(value._array, attribute))
    grads = [values["grad"]] if "grad" in values else [values.get("grads")]
    results = node.apply([None if g is None else g._array for g in grads], edges)
    made = [None if r is None else new_tensor(as_array(_whole(r))) for r in results]
    if parameter is not None:
        return made[inputs.index(parameter)]
    return made[0] if len(made) == 1 else tuple(made)


def _whole(value: Any) -> Any:
    return value.whole() if hasattr(value, "whole") else value


def _set(node: Any, name: str, value: Any) -> None:
    setattr(node, f"saved_{name}", tuple(value) if isinstance(value, list) else value)
    if isinstance(value, Tensor) and hasattr(type(node), f"saved_{name}_version"):
        setattr(node, f"saved_{name}_version", value._version)


def _set_attribute(node: Any, name: str, attribute: str, value: Any) -> None:
    if attribute == "dtype" and hasattr(value, "numpy_dtype"):
        value = value.numpy_dtype
    if hasattr(type(node), f"saved_{name}_{attribute}"):
        sizes = (value,) if isinstance(value, int) else value
        setattr(node, f"saved_{name}_{attribute}", tuple(sizes) if attribute == "shape" else value)
