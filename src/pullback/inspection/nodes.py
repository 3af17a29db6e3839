"""Walking a recorded graph as it is: without expanding fused nodes and without unpacking what hooks packed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pullback.backend.array_module import as_array, ndarray
from pullback.backend.device_array import DeviceArray
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.history import gradient_edge, recorded_edge
from pullback.graph.node import FIRST, Node
from pullback.graph.saved_tensor import PackedTensor, SavedList, SavedOutput
from pullback.graph.source_lines import module_path_of, place_of
from pullback.kernels.comparison import isfinite
from pullback.tensor.tensor import Tensor


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in a tensor, a list, a tuple or a dict.

    >>> import pullback
    >>> len(list(tensors_in([pullback.ones(1), {"a": pullback.ones(1)}])))
    2
    """
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def nodes_behind(tensors: Any) -> list[Node]:
    """The nodes that a backward pass from `tensors` would run, latest recorded first, the accumulators last.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> [node.name() for node in nodes_behind((x * x).sum())]
    ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
    """
    waiting = [edge[0] for tensor in tensors_in(tensors) if (edge := gradient_edge(tensor)) is not None]
    seen: dict[Node, None] = {}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen[node] = None
        waiting.extend(edge[0] for edge in node.next_edges if edge is not None)
    return sorted(seen, key=lambda node: (hasattr(node, "variable"), -node.sequence_nr))


def nodes_since(tensors: Any, first: int) -> Iterator[Node]:
    """The nodes behind `tensors` that were recorded in this thread since the sequence number `first`."""
    waiting = [edge[0] for tensor in tensors_in(tensors) if (edge := recorded_edge(tensor)) is not None]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in seen and first <= node.sequence_nr < FIRST:
            seen.add(node)
            waiting.extend(edge[0] for edge in node.next_edges if edge is not None)
            yield node


def acting_node(node: Node) -> Node:
    """The node that does the work of `node`: another one where its steps were recorded. See Note [Fused nodes]."""
    extra = node.extra
    return node if extra is None or extra.outer is None else extra.outer


def is_released(node: Node) -> bool:
    """Whether what a node saved is gone. One whose steps were recorded gave its values to them."""
    return acting_node(node).released


def saved_values(node: Node) -> Iterator[tuple[str, Any]]:
    """What a node keeps for its backward: tensors, arrays, saved outputs, packed values, each with its name."""
    node = acting_node(node)
    if isinstance(node, BackwardCFunction):
        for index, (value, _) in enumerate(node.stored or ()):
            if value is not None:
                yield f"saved_tensors[{index}]", value
    for name in node.saved_names:
        value = getattr(node, f"saved_{name}", None)
        if isinstance(value, SavedList):
            for index, tensor in enumerate(value.values):
                yield f"{name}[{index}]", tensor
        elif isinstance(value, Tensor | SavedOutput | PackedTensor | ndarray | DeviceArray):
            yield name, value
    named: Callable[[], Iterator[tuple[str, Any]]] | None = getattr(node, "named_values", None)
    if named is not None:
        yield from named()
        return
    for name, value in getattr(node, "__dict__", {}).items():
        if not name.startswith("saved_") and name not in _NOT_SAVED:
            yield from ((name, held) for held in _memory_in(value))
    inner = getattr(node, "inner", None)
    if isinstance(inner, Node):  # the operation on a view that a CopySlices runs
        yield from saved_values(inner)


_NOT_SAVED = {"variable", "stored", "to_save", "extra", "next_edges", "inner"}


def _memory_in(value: Any) -> Iterator[Any]:
    """The tensors and arrays in what a node keeps under a name of its own."""
    if isinstance(value, Tensor | ndarray | DeviceArray):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _memory_in(item)
    elif isinstance(value, dict):
        yield from _memory_in(list(value.values()))


def held_arrays(value: Any) -> Iterator[Any]:
    """The arrays that a saved value keeps alive; a packed one is not unpacked, but looked into."""
    if isinstance(value, PackedTensor):
        for packed in _memory_in(value.packed):
            yield from held_arrays(packed)
        held = getattr(value.packed, "held_array", None)
        if held is not None:
            yield held
    elif isinstance(value, ndarray | DeviceArray):
        yield value
    else:
        yield value._array


def held_behind(value: Any) -> Iterator[Any]:
    """The arrays that are kept to make a packed value again: the inputs of a checkpointed region, or of an operation.

    Who packs says so with a method `held_values()`: of what it packed, or of the object whose method unpacks.
    """
    if isinstance(value, PackedTensor):
        for keeper in (value.packed, getattr(value.unpack_hook, "__self__", None)):
            for held in getattr(keeper, "held_values", tuple)():
                for _, inner in saved_values(held) if isinstance(held, Node) else [("", held)]:
                    yield from held_arrays(inner)
                    yield from held_behind(inner)


def is_finite(value: Any) -> bool:
    """Whether all elements are; whole numbers and missing gradients are."""
    if value is None:
        return True
    array = as_array(value)
    return array.dtype.kind not in "fc" or bool(isfinite(array).all())


def require_tensors(function: str, value: Any) -> None:
    """Refuse what is neither a tensor nor holds one."""
    if next(tensors_in(value), None) is None:
        raise TypeError(f"{function} expects a tensor, or a list of tensors, got {type(value).__name__}")


def line_of(node: Node) -> tuple[str, int] | None:
    """The user's line that recorded the node, where it is known."""
    return place_of(node)


def module_of(node: Node) -> str | None:
    """The path of the module that recorded the node, where it is known."""
    return module_path_of(node)


def leaves_behind(tensors: Any) -> list[Tensor]:
    """The leaves that a backward pass from `tensors` would give gradients to.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> leaves_behind((x * 2).sum())[0] is x
    True
    """
    return [node.variable for node in nodes_behind(tensors) if hasattr(node, "variable")]


def named_leaves(names: Any) -> list[tuple[str, Tensor]]:
    """Pairs of names and tensors of a module, a mapping, pairs, or bare tensors, which are numbered."""
    if hasattr(names, "named_parameters"):
        return list(names.named_parameters())
    if isinstance(names, Tensor):
        return [("0", names)]
    pairs: Iterable[Any] = names.items() if hasattr(names, "items") else names
    return [
        (str(index), entry) if isinstance(entry, Tensor) else (str(entry[0]), entry[1])
        for index, entry in enumerate(pairs)
    ]
