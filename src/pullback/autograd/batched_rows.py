"""All rows of a Jacobian by few passes of the engine, where that gives what a pass for each row would give.

# Note [Batched rows]
`jacobian` asks for the gradient of every element of an output: the same nodes run for each, on gradients that differ
only in their values. They run once on a batch of rows instead (as under vmap: see Note [Batched tensors]) if nobody can
tell: every node on the way is an operation's own, without hooks and without packed tensors, and no mode watches
operations. User code in the graph (hooks, custom Functions, checkpoints) is called once per row, so there the rows stay
apart; and they do wherever an operation has no batching rule or the batch fails: the passes row by row are what an
error comes from. Rows are taken in chunks, so that a batch stays near the size of the caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.creation import zeros
from pullback.engine.graph_task import GraphTask
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import GraphRoot
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node
from pullback.graph.renamed_node import RenamedNode
from pullback.graph.saved_tensor import PackedTensor
from pullback.graph.views import AsStridedBackward0, CopySlices
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.progress import track
from pullback.recording.gradient_at_once import GradientAtOnce
from pullback.recording.gradient_node import GradientNode
from pullback.tensor.tensor import Tensor

LEAST_ROWS = 6
"""Fewer rows are faster one by one: a batched pass costs about as much as five."""
CHUNK_ELEMENTS = 2**20
"""How many elements the largest gradient of a chunk of rows may have."""


def rows_at_once(output: Any, inputs: Sequence[Any], *, create_graph: bool) -> list[Any] | None:
    """For each input, the gradients of all elements of `output` along dimension 0, or None where it is not reached.

    None in place of the list where rows must be computed one by one. See Note [Batched rows].
    """
    count = output.numel()
    nodes = nodes_between(output, inputs) if count >= LEAST_ROWS else None
    if nodes is None:
        return None
    chunk = min(count, CHUNK_ELEMENTS // max(_largest_gradient(nodes), count))
    if chunk < LEAST_ROWS:
        return None
    parts = []
    starts = range(0, count, chunk)
    for start in track(starts, len(starts), "chunks of the Jacobian"):
        basis = _unit_rows(output, start, min(chunk, count - start))
        try:
            part = _batched_gradients(output, inputs, basis, create_graph)
        except Exception:  # whatever it is: row by row it either works or raises what the user should see
            return None
        parts.append(part)
    if len(parts) == 1:
        return [_own(result, basis, parts[0][:index]) for index, result in enumerate(parts[0])]
    return [None if of_input[0] is None else functions.cat(of_input, 0) for of_input in zip(*parts, strict=True)]


def _is_watched() -> bool:
    """Whether a mode of this thread sees operations or nodes run."""
    state = switches
    return bool(
        state.interceptors or state.anomaly_mode or state.saved_tensor_hooks or state.inference_mode
        or state.transforms or state.dual_level >= 0 or state.node_observer is not None or process.log_nodes
    )  # fmt: skip


def _is_plain(tensor: Any) -> bool:
    return type(tensor) is Tensor


def nodes_between(output: Any, inputs: Sequence[Any]) -> list[Node] | None:
    """The nodes that run for the gradient of an output; None if somebody could tell how often they run."""
    if _is_watched() or not all(_is_plain(t) for t in (output, *inputs)):
        return None
    ends = [gradient_edge(output)]
    captures = [edge for edge in map(gradient_edge, inputs) if edge is not None]
    task = GraphTask(keep_graph=True, create_graph=False, depth=0)
    task.mark_needed(GraphRoot([edge for edge in ends if edge is not None], []), captures, ())
    info = task.exec_info
    assert info is not None
    nodes = [node for node, use in info.items() if use.needed or use.captures]
    nodes = [node for node in nodes if not isinstance(node, GraphRoot)]
    return nodes if all(_runs_unseen(node) for node in nodes) else None


def _largest_gradient(nodes: Sequence[Node]) -> int:
    """The number of elements of the largest gradient that a node gets."""
    largest = 1
    for node in nodes:
        if node.output_metadata is not None:
            shapes = [metadata.shape for metadata in node.output_metadata]
        else:
            shapes = [node.variable._array.shape if isinstance(node, AccumulateGrad) else node.shape or ()]
        largest = max(largest, *map(prod, shapes))
    return largest


def _runs_unseen(node: Node) -> bool:
    """Whether a node is an operation's own, which no code of the user is part of."""
    if node.extra is not None and node.extra.has_hooks():
        return False
    fields = _SAVED.get(type(node))
    if fields is not None:
        return all(_is_readable(getattr(node, field)) for field in fields)
    if isinstance(node, AccumulateGrad):
        extra = node.variable._extra
        return extra is None or not (extra.hooks or extra.post_accumulate_hooks)
    if isinstance(node, (CopySlices, RenamedNode)):
        return _runs_unseen(node.inner)
    if isinstance(node, GradientNode):
        if isinstance(node, GradientAtOnce):
            node.spread()
        return True
    if node.needs_tensors or not type(node).__module__.startswith("pullback.generated."):
        return isinstance(node, AsStridedBackward0)
    _SAVED[type(node)] = tuple([f"saved_{name}" for name in node.saved_names if hasattr(node, f"saved_{name}")])
    return _runs_unseen(node)


_SAVED: dict[type[Node], tuple[str, ...]] = {}
"""The fields in which nodes of generated operations keep tensors and numbers, by kind."""


def _is_readable(saved: Any) -> bool:
    """Whether reading a saved value calls nobody: no unpack hook, no subclass that overrides operations."""
    if type(saved) is Tensor:
        return True
    if isinstance(saved, Tensor):
        return saved._is_param and type(saved) not in overrides.types
    return not isinstance(saved, PackedTensor)


def _unit_rows(output: Any, start: int, count: int) -> Any:
    """Rows of the identity matrix over the elements of `output`, in its shape."""
    size = output.numel()
    rows = zeros((count, *output.shape), dtype=output.dtype, device=output.device)
    functions.fill_(functions.as_strided(rows, (count,), (size + 1,), start), 1)
    return rows


def _batched_gradients(output: Any, inputs: Sequence[Any], basis: Any, create_graph: bool) -> list[Any]:
    """Vector-Jacobian products with all vectors of `basis`."""
    from pullback.func.batched_tensor import batched  # lazy: batching is a transform of the layers above
    from pullback.func.row_level import RowLevel  # lazy: see above
    from pullback.func.transform_level import pull_back  # lazy: see above

    level = RowLevel(basis._array.shape[0], recorded=create_graph)
    with level.running():
        found = pull_back([output], inputs, [batched(basis, level)], create_graph=create_graph)
    return [None if value is None else level.to_physical(value) for value in found]


def _own(result: Any, basis: Any, others: Sequence[Any]) -> Any:
    """The result in memory of its own: it may be a view of the vectors, or be shared by two inputs."""
    if result is None:
        return None
    array = result._array
    shared = array is basis._array or any(other is not None and other._array is array for other in others)
    if array.base is None and array.flags.c_contiguous and not shared:
        return result
    return G.contiguous_copy(result)
