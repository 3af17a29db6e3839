"""How tensors look inside of running transforms: as PyTorch's wrappers, one around the other, innermost level outside.

Tensors are not wrapped here (see Note [Differentiating transforms]), so what PyTorch's wrappers would be is found from the
graph behind a tensor, its tangents, and the vmaps it is batched at.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from pullback.func.batched_tensor import BatchedTensor, innermost
from pullback.functions.protocols import Transforms, plain_repr
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node
from pullback.graph.tangents import levels_of
from pullback.modes.switches import switches
from pullback.tensor.tensor import new_tensor
from pullback.typing import Array

_DEAD = -2


def describe(tensor: Any) -> str | None:
    """The text of a tensor that belongs to transforms; None for one that belongs to none."""
    array, wrappers = _batched_at(tensor)
    bottom = innermost(tensor)
    inner = switches.dual_depths
    wrappers += [(inner[n], f"GradTrackingTensor(lvl={inner[n]}, value=") for n in levels_of(bottom) if n in inner]
    transforms, outer = _transforms_behind(bottom)
    for transform in transforms:
        shown = transform.depth if transform.open else _DEAD
        wrappers.append((transform.depth, f"GradTrackingTensor(lvl={shown}, value="))
    if not wrappers:
        return None
    node = None if isinstance(outer, AccumulateGrad) else outer
    text = plain_repr(new_tensor(array), node, requires_grad=outer is not None)
    for _, opening in sorted(wrappers):
        text = f"{opening}\n{indent(text, '    ')}\n)"
    return text


def _batched_at(tensor: Any) -> tuple[Array, list[tuple[int, str]]]:
    """The array at the bottom, with one dimension for each level that the tensor is batched at, and the wrappers of these.

    What is the same for all examples is expanded to them here, where PyTorch does not wrap it.
    """
    batches: list[Any] = []
    while isinstance(tensor, BatchedTensor):
        batches.insert(0, tensor)
        tensor = tensor._value
    array = tensor._array
    dims, places = list(range(array.ndim)), []
    for batch in batches:  # outermost first, each counting the dimensions that those before it left
        places.append((batch._level, dims[batch._dim], list(dims)))
        del dims[batch._dim]
    same = {at for level, at, _ in places if level.batch_size > 1 and array.strides[at] == 0}
    wrappers = []
    for level, at, seen in places:
        if at not in same:
            bdim = [d for d in seen if d not in same].index(at)
            wrappers.append((level.depth, f"BatchedTensor(lvl={level.depth}, bdim={bdim}, value="))
    return array[tuple([0 if d in same else slice(None) for d in range(array.ndim)])] if same else array, wrappers


def _transforms_behind(tensor: Any) -> tuple[list[Any], Node | None]:
    """The transforms whose inputs a tensor was computed from, and the node that made it if it leads to a leaf outside."""
    edge = gradient_edge(tensor)
    if edge is None:
        owner = getattr(tensor, "_tracked_by", None)
        return ([] if owner is None else [owner]), None
    found: list[Any] = []
    outside = False
    waiting, seen = [edge[0]], {edge[0]}
    while waiting:
        node = waiting.pop()
        owner = _owner_of(node)
        if owner is not None and owner not in found:
            found.append(owner)
        outside = outside or (isinstance(node, AccumulateGrad) and owner is None)
        for following in node.next_edges:
            if following is not None and following[0] not in seen:
                seen.add(following[0])
                waiting.append(following[0])
    return found, _made_by(edge[0]) if outside else None


def _made_by(node: Node) -> Node:
    """The node that made the value which transforms only gave other names."""
    while not isinstance(node, AccumulateGrad) and _owner_of(node) is not None and node.next_edges[0] is not None:
        node = node.next_edges[0][0]
    return node


def _owner_of(node: Node) -> Any:
    """The transform that a node belongs to, as the place of one of its inputs."""
    if isinstance(node, AccumulateGrad):
        return getattr(node.variable, "_tracked_by", None)
    return None if node.extra is None else node.extra.transform


Transforms.describe = staticmethod(describe)
