"""Graphs in files: `save_graph` writes what a backward pass needs, `load_graph` makes the graph again elsewhere.

# Note [Saved graphs]
A file holds plain data and tensors only, and is read by the restricted loader of pullback/serialization: no code comes
from it. A node is the name of an operation and what its rule reads; the rule itself is that of the reader. So the file
also holds the version of pullback and a digest of the text of each rule that it needs, and a reader with others refuses it.
What is code cannot be saved: custom Functions and hooks. Nodes stand in an order in which edges only lead forward, and
the reader insists on it, so that no file makes a cycle.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any, NamedTuple

from pullback.backend.dtype import ALL, from_numpy_dtype
from pullback.generated.registry import OPERATIONS
from pullback.graph.accumulate_grad import AccumulateGrad, accumulator_of
from pullback.graph.fused_node import StepsOfResults, expanding
from pullback.graph.history import gradient_edge
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.graph.renamed_node import RenamedNode, renamed
from pullback.graph.saved_tensor import PackedTensor, SavedList, SavedOutput
from pullback.graph.source_lines import freed
from pullback.graph.views import AsStridedBackward0, CopySlices
from pullback.inspection.nodes import acting_node, named_leaves, tensors_in
from pullback.inspection.rule_digests import rule_digest
from pullback.kernels.strided import Geometry
from pullback.recording.gradient_at_once import GradientAtOnce
from pullback.recording.gradient_node import GradientNode
from pullback.serialization import load, save
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import VersionCounter
from pullback.version import __version__

__all__ = ["LoadedGraph", "load_graph", "save_graph"]

_FORMAT = "pullback graph 1"
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, ImportError)
"""What data of another form than `save_graph` writes may end in."""


class LoadedGraph(NamedTuple):
    """A graph that was read from a file."""

    loss: Any
    """The tensor, or the list of tensors, that the graph was saved for."""
    leaves: dict[str, Tensor]
    """The leaves that get gradients, by the names that they were saved under."""

    def backward(self, gradient: Any = None) -> dict[str, Any]:
        """Run backward from the loss and return the gradients of the leaves by name."""
        losses = list(tensors_in(self.loss))
        import_module("pullback.autograd").backward(losses, None if gradient is None else [gradient])
        return {name: leaf.grad for name, leaf in self.leaves.items()}


def save_graph(loss: Any, file: Any, leaves: Any = None) -> None:
    """Write the graph behind `loss`, a tensor or a list of tensors, to a file, to run its backward in another process.

    `leaves` names the leaves: a module, a mapping, or pairs; others are called `leaf0`, `leaf1`, ... Custom Functions,
    hooks and released graphs cannot be saved, and are named in the error.

    >>> import io, pullback
    >>> w = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> file = io.BytesIO()
    >>> save_graph((w * w).sum(), file, {"w": w})
    >>> _ = file.seek(0)
    >>> load_graph(file).backward()
    {'w': tensor([2., 4.])}
    """
    roots = list(tensors_in(loss))
    edges = [gradient_edge(root) for root in roots]
    if not roots or None in edges:
        raise ValueError("save_graph expects tensors that require grad: there is no graph behind the others")
    with expanding:  # another thread that looks at a fused node would put other nodes in its place meanwhile
        writer = _Writer(ordered_nodes([edge[0] for edge in edges if edge is not None]), leaves)
        data = {
            "format": _FORMAT, "version": __version__, "nodes": writer.nodes(), "rules": writer.rules,
            "roots": [
                [_plain_tensor(root), writer.edge(edge)] for root, edge in zip(roots, edges, strict=True)
            ],
            "single": isinstance(loss, Tensor),
        }  # fmt: skip
    save(data, file)


def load_graph(file: Any) -> LoadedGraph:
    """Read a graph that `save_graph` wrote; nothing in the file is run.

    A file of another version of pullback, or of other rules, is refused with the reason.

    >>> import io, pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> file = io.BytesIO()
    >>> save_graph(x.exp().sum(), file)
    >>> _ = file.seek(0)
    >>> graph = load_graph(file)
    >>> graph.loss.grad_fn.name(), list(graph.leaves)
    ('SumBackward0', ['leaf0'])
    """
    data = load(file, weights_only=True)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ValueError(f"the file does not hold a graph: expected the format {_FORMAT!r}")
    try:
        _check_source(data)
        return _Reader(data).graph()
    except _DAMAGE as error:
        if type(error) is ValueError and "graph" in str(error):
            raise
        raise ValueError(f"the graph is damaged: {type(error).__name__}: {error}") from None


def _check_source(data: dict[str, Any]) -> None:
    """Refuse a file whose graph means something else here."""
    if data["version"] != __version__:
        raise ValueError(
            f"the graph was saved by pullback {data['version']}, and this is pullback {__version__}: a graph is run by the "
            "rules of the version that recorded it. Load it there, or record it again here."
        )
    for operation, digest in data["rules"].items():
        if operation not in OPERATIONS:
            raise ValueError(f"the graph needs the operation '{operation}', which is not there")
        if rule_digest(operation) != digest:
            raise ValueError(
                f"the rule of '{operation}' is not the one that the graph was recorded with: its text in "
                f"pullback/derivatives/{OPERATIONS[operation].family}.py has the digest {rule_digest(operation)}, and the "
                f"file has {digest}. Record the graph again."
            )


def ordered_nodes(roots: list[Node]) -> list[Node]:
    """The nodes behind `roots` in an order in which edges only lead forward."""
    order: list[Node] = []
    done: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in roots]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            order.append(node)
        elif node not in done:
            done.add(node)
            if isinstance(node, GradientAtOnce):
                node.spread()
            stack.append((node, True))
            stack.extend((edge[0], False) for edge in node.next_edges if edge is not None)
    return order[::-1]


def _plain_tensor(tensor: Any) -> Tensor:
    return new_tensor(tensor._array)


def _is_passed(node: Node) -> bool:
    """Whether a node only hands gradients on to the nodes that compute them.

    See Note [Gradient nodes] and Note [Fused nodes].
    """
    return (isinstance(node, GradientNode) and node.chain is None) or isinstance(acting_node(node), StepsOfResults)


_WAYS_ROUND = {
    "CompiledFunctionBackward": ". Compute the loss by the function itself in the place of its compiled form",
    "CheckpointFunctionBackward": ". Pass use_reentrant=False to checkpoint(): then operations alone are in the graph",
}


class _Writer:
    """Turns nodes into plain data."""

    def __init__(self, nodes: list[Node], leaves: Any) -> None:
        for node in nodes:
            if node.extra is not None and node.extra.has_hooks() and not isinstance(node, AccumulateGrad):
                raise ValueError(f"{node.name()} has hooks, which are code and cannot be saved: remove them first")
        self._nodes = [node for node in nodes if not _is_passed(node)]
        self._positions = {node: index for index, node in enumerate(self._nodes)}
        self._names = {} if leaves is None else {id(leaf): name for name, leaf in named_leaves(leaves)}
        self.rules: dict[str, str] = {}

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes."""
        return [self._node(node) for node in self._nodes]

    def edge(self, edge: Any) -> list[int] | None:
        """An edge as two numbers."""
        while edge is not None and _is_passed(edge[0]):
            edge = edge[0].next_edges[edge[1]]
        return None if edge is None else [self._positions[edge[0]], edge[1]]

    def _node(self, node: Node) -> dict[str, Any]:
        if isinstance(node, AccumulateGrad):
            return self._leaf(node)
        acting = acting_node(node)
        edges = [self.edge(edge) for edge in node.next_edges]
        return {"edges": edges, "sequence_nr": node.sequence_nr, **self._described(acting)}

    def _leaf(self, node: AccumulateGrad) -> dict[str, Any]:
        leaf = node.variable
        extra = leaf._extra
        if (extra is not None and (extra.hooks or extra.post_accumulate_hooks)) or (
            node.extra is not None and node.extra.has_hooks()
        ):
            raise ValueError(
                f"a leaf of shape {list(leaf.shape)} has hooks, which are code and cannot be saved: remove them first"
            )
        count = sum(isinstance(other, AccumulateGrad) for other in self._nodes[: self._positions[node]])
        return {
            "kind": "leaf",
            "edges": [],
            "tensor": _plain_tensor(leaf),
            "name": self._names.get(id(leaf), f"leaf{count}"),
        }

    def _described(self, node: Node) -> dict[str, Any]:
        """What a node is and what it saved."""
        if node.released:
            raise freed(node)
        if isinstance(node, RenamedNode):
            inner = self._described(node.inner)
            return {"kind": "renamed", "name": type(node).__name__, "fused": node.fused, "inner": inner}
        if isinstance(node, CopySlices | AsStridedBackward0):
            return self._strided(node)
        if not node.operation or node.operation not in OPERATIONS or node.needs_tensors:
            raise ValueError(
                f"{node.name()} cannot be saved: only operations of pullback can, whose rules the reader has; the backward "
                f"of a custom Function, or of a compiled one, is code{_WAYS_ROUND.get(node.name(), '')}"
            )
        self.rules[node.operation] = rule_digest(node.operation)
        return {
            "kind": "operation", "operation": node.operation, "shape": _encoded(node.shape), "dtype": _encoded(node.dtype),
            "outputs": node.output_count,
            "metadata": None if node.output_metadata is None else [_encoded(_pair(m)) for m in node.output_metadata],
            "broadcast": None if node.broadcast is None else [_encoded(given) for given in node.broadcast],
            "saved": {name: self._saved(node, name) for name in (*node.saved_names, *node.fact_names)},
        }  # fmt: skip

    def _strided(self, node: Any) -> dict[str, Any]:
        base, view = node.base_geometry, node.view_geometry
        recorded = node.inner_dtype if isinstance(node, CopySlices) else node.base_dtype
        if node.turned or not base.dtype == view.dtype == recorded:
            raise ValueError(f"{node.name()} of a view that changes the dtype, or is conjugated, cannot be saved")
        entry: dict[str, Any] = {"kind": "as_strided", "base": _geometry(base), "view": _geometry(view)}
        if isinstance(node, CopySlices):
            entry |= {"kind": "copy_slices", "inner": self._described(node.inner)}
        return entry

    def _saved(self, node: Node, name: str) -> Any:
        value = getattr(node, f"saved_{name}")
        if getattr(node, f"saved_{name}_version", -1) < 0:
            return self._tensors(value) if isinstance(value, SavedList) else _encoded(value, node, name)
        tensor = node.unpack(name)  # its version is checked
        if isinstance(value, SavedOutput):
            return ["output", _plain_tensor(tensor), value.output_nr, value.differentiable]
        if isinstance(value, PackedTensor) and value.output_nr is not None:
            return ["output", _plain_tensor(tensor), value.output_nr, value.requires_grad]
        return self._tensor(tensor)

    def _tensors(self, value: SavedList) -> list[Any]:
        return ["tensors", [self._tensor(tensor) for tensor in value.tensors()]]

    def _tensor(self, tensor: Any) -> list[Any]:
        edge = gradient_edge(tensor)
        known = edge if edge is not None and edge[0] in self._positions else None
        if known is not None and isinstance(known[0], AccumulateGrad) and known[0].variable._array is tensor._array:
            return ["leaf", self._positions[known[0]]]
        return ["tensor", _plain_tensor(tensor), self.edge(known)]


def _pair(metadata: InputMetadata) -> tuple[Any, Any]:
    return metadata.shape, metadata.numpy_dtype


def _geometry(geometry: Geometry) -> list[Any]:
    return [list(geometry.shape), list(geometry.strides), geometry.offset, _encoded(geometry.dtype)]


def _encoded(value: Any, node: Node | None = None, name: str = "") -> Any:
    """A plain value: numbers, words and None as they are, others as a list that begins with their kind."""
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, Size):
        return ["size", list(value)]
    if isinstance(value, tuple | list):
        return ["tuple" if isinstance(value, tuple) else "list", [_encoded(item, node, name) for item in value]]
    if isinstance(value, slice):
        return ["slice", [_encoded(part, node, name) for part in (value.start, value.stop, value.step)]]
    if value is Ellipsis:
        return ["ellipsis"]
    if isinstance(value, Tensor):
        return ["tensor", _plain_tensor(value), None]
    if hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        return ["number", _encoded(value.item()), from_numpy_dtype(value.dtype).name]
    if hasattr(value, "kind") and hasattr(value, "itemsize"):
        return ["dtype", from_numpy_dtype(value).name]
    where = "" if node is None else f" of {node.name()} ('{name}')"
    raise ValueError(f"a value{where} of type {type(value).__name__} cannot be saved")


_DTYPES = {known.name: known for known in ALL}


class _Reader:
    """Makes nodes of plain data, which it does not trust."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self._entries = data["nodes"]
        self._nodes: list[Any] = [None] * len(self._entries)
        self._met: set[int] = set()

    def graph(self) -> LoadedGraph:
        """The graph."""
        leaves: dict[str, Tensor] = {}
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            if entry["kind"] == "leaf":
                leaf = _plain_tensor(entry["tensor"]).requires_grad_()
                self._nodes[index] = accumulator_of(leaf)
                leaves[str(entry["name"])] = leaf
                continue
            edges = tuple(self._edge(edge, index) for edge in entry["edges"])
            self._nodes[index] = self._node(entry, edges, index)
        self._number()
        losses = [self._attached(root, self._edge(edge, -1)) for root, edge in self._data["roots"]]
        ordered = dict(reversed(leaves.items()))
        return LoadedGraph(losses[0] if self._data["single"] else losses, ordered)

    def _number(self) -> None:
        """Number the nodes in the order in which they were recorded: gradients are summed in it.

        The steps of a fused node share its number, and run in the order in which gradients reach them.
        """
        recorded = [index for index, entry in enumerate(self._entries) if entry["kind"] != "leaf"]
        numbers = sorted({int(self._entries[index]["sequence_nr"]) for index in recorded})
        given = {number: next_sequence_nr() for number in numbers}
        for index in recorded:
            self._nodes[index].sequence_nr = given[int(self._entries[index]["sequence_nr"])]

    def _edge(self, edge: Any, index: int) -> Any:
        if edge is None:
            return None
        position, number = edge
        if not (isinstance(position, int) and index < position < len(self._nodes) and isinstance(number, int)):
            raise ValueError(
                f"the graph is damaged: node {index} has an edge to {position!r}, which does not come after it"
            )
        node = self._nodes[position]
        if not 0 <= number < node.output_count:
            raise ValueError(f"the graph is damaged: node {position} has no output {number}")
        return (node, number)

    def _attached(self, tensor: Any, edge: Any) -> Tensor:
        made = _plain_tensor(tensor)
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            return edge[0].variable
        made._requires_grad, made._edge = edge is not None, edge
        return made

    def _node(self, entry: dict[str, Any], edges: Any, index: int) -> Node:
        kind = entry["kind"]
        if kind == "operation":
            return self._operation(entry, edges, index)
        if kind == "renamed":
            return renamed(self._node(entry["inner"], edges, index), str(entry["name"]), entry.get("fused", ""))
        if kind in ("as_strided", "copy_slices"):
            return self._strided(entry, edges, index)
        raise ValueError(f"the graph is damaged: node {index} is of the unknown kind {kind!r}")

    def _operation(self, entry: dict[str, Any], edges: Any, index: int) -> Node:
        cls = node_class(entry["operation"])
        node: Any = new_node(cls)
        node.next_edges = edges
        node.shape, node.dtype = self._value(entry["shape"], node), self._value(entry["dtype"], node)
        if entry["metadata"] is not None:
            node.output_metadata = tuple(InputMetadata(*self._value(pair, node)) for pair in entry["metadata"])
        if entry["outputs"] != cls.output_count:
            node.output_count = int(entry["outputs"])
        if entry["broadcast"] is not None:
            node.broadcast = tuple(self._value(given, node) for given in entry["broadcast"])
        names = (*cls.saved_names, *cls.fact_names)
        if set(entry["saved"]) != set(names):
            raise ValueError(f"the graph is damaged: {cls.__name__} saves {', '.join(names)}, the file has other names")
        for name, value in entry["saved"].items():
            self._set(node, name, value, index)
        made: Node = node
        return made

    def _set(self, node: Any, name: str, value: Any, index: int) -> None:
        kind = value[0] if isinstance(value, list) and value else None
        if name not in node.tensor_names or kind not in ("leaf", "tensor", "output"):
            setattr(node, f"saved_{name}", self._value(value, node, index))
            return
        if kind == "output":
            tensor = _plain_tensor(value[1])
            tensor._requires_grad = bool(value[3])
            saved: Any = SavedOutput(tensor, int(value[2]))
        else:
            saved = self._value(value, node, index)
        if saved._counter is None:
            saved._counter = VersionCounter()
        setattr(node, f"saved_{name}", saved)
        setattr(node, f"saved_{name}_version", saved._counter.value)

    def _value(self, value: Any, node: Any, index: int = -1) -> Any:
        if value is None or type(value) in (bool, int, float, complex, str):
            return value
        if not isinstance(value, list):
            raise TypeError(f"node {index} has a value of type {type(value).__name__}")
        if id(value) in self._met:  # parts of parts that occur twice could be more than fit in memory
            raise ValueError(f"the graph is damaged: a value of node {index} occurs twice")
        self._met.add(id(value))
        kind, *rest = value
        if kind in ("tuple", "list"):
            items = [self._value(item, node, index) for item in rest[0]]
            return tuple(items) if kind == "tuple" else items
        if kind == "size":
            return Size(rest[0])
        if kind == "slice":
            return slice(*[self._value(part, node, index) for part in rest[0]])
        if kind == "ellipsis":
            return Ellipsis
        if kind == "dtype":
            return _DTYPES[rest[0]].numpy_dtype
        if kind == "number":
            return _DTYPES[rest[1]].numpy_dtype.type(self._value(rest[0], node, index))
        if kind == "leaf":
            return self._edge([rest[0], 0], index)[0].variable
        if kind == "tensor":
            return self._attached(rest[0], self._edge(rest[1], index))
        if kind == "tensors":
            return SavedList([self._value(item, node, index) for item in rest[0]])
        raise ValueError(f"the graph is damaged: a value of the unknown kind {kind!r}")

    def _strided(self, entry: dict[str, Any], edges: Any, index: int) -> Node:
        base, view = (self._geometry(entry[name]) for name in ("base", "view"))
        size, strides = view.shape, view.element_strides()
        offset = view.offset // max(1, view.dtype.itemsize)

        def replay(tensor: Any) -> Any:
            return tensor.as_strided(size, strides, offset + tensor.storage_offset())

        if entry["kind"] == "as_strided":
            node: Any = AsStridedBackward0(base, view, replay, base.dtype)
        else:
            node = CopySlices.__new__(CopySlices)
            node.shape, node.dtype, node.base_geometry, node.view_geometry = base.shape, base.dtype, base, view
            node.turned, node.replay, node.needs_tensors = False, replay, False
            node.inner_dtype, node.is_strided = view.dtype, True
            node.inner = self._node(entry["inner"], edges, index)
            node._place_saved_outputs()
        node.next_edges = edges
        made: Node = node
        return made

    def _geometry(self, value: Any) -> Geometry:
        shape, strides, offset, dtype = value
        numbers = [*shape, *strides, offset]
        if not all(type(number) is int and 0 <= number < 2**59 for number in numbers) or len(shape) != len(strides):
            raise ValueError(
                "the graph is damaged: the geometry of a view has sizes, strides or an offset that none has"
            )
        return Geometry(tuple(shape), tuple(strides), offset, _DTYPES[dtype[1]].numpy_dtype)


@functools.cache
def node_class(operation: str) -> type[Node]:
    """The class of an operation's nodes.

    >>> node_class("mul").__name__
    'MulBackward0'
    """
    family = vars(import_module(f"pullback.generated.{OPERATIONS[operation].family}"))
    found = [
        value for value in family.values()
        if isinstance(value, type) and issubclass(value, Node) and value.operation == operation
    ]  # fmt: skip
    if not found:
        raise ValueError(f"the operation '{operation}' has no node")
    return found[0]
