"""What the differentiating transforms share: inputs as fresh places of the graph, gradients under vmap, clean results.

# Note [Differentiating transforms]
grad, vjp and jvp run on the one ordinary graph. An input becomes an alias at a place of its own: a leaf, or a recorded
view where it requires grad already, so that outer transforms are reached through it. The graph lies below every vmap: an
input that is the same for all examples is first expanded to all of them, else its gradient would be a sum over them.
When a transform is over, its leaves are dead; results that lead to no other leaf lose their history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import is_float_or_complex
from pullback.engine.engine import engine
from pullback.errors import is_pytorch_tensor, kind_of
from pullback.func.batched_tensor import (
    BatchedTensor,
    innermost,
    levels_of_batch,
    places_of,
    with_level,
    without_level,
    wrapped_at,
)
from pullback.func.vmap_level import VmapLevel, active_levels
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import Error
from pullback.graph.gradient_edge import GradientEdge
from pullback.graph.history import gradient_edge
from pullback.graph.tangents import levels_of, set_tangent, tangent_at, without_history
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.interception import has_overrides
from pullback.modes.saved_tensor_hooks import disable_hooks
from pullback.modes.switches import kept_switches, set_switch, switched, switches
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.utils._pytree import tree_map

_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Use these outside of the transform."
)


class Transform:
    """One running transform; its leaves and the tensors made inside of it know it. See Note [Captured tensors]."""

    def __init__(self) -> None:
        self.open = True
        self.outer = switches.transform
        self.depth = switches.transforms + 1
        """The place among all running transforms, counted from the outermost."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the user's function: tensors made belong to this transform, in whatever mode the world outside is."""
        with kept_switches("inference_mode", "transform", "transforms", "saves_inference_tensors"):
            set_switch("inference_mode", False)
            set_switch("transform", self)
            switches.transforms += 1
            switches.saves_inference_tensors = True
            yield


@contextmanager
def recording() -> Iterator[None]:
    """Record, whatever the modes outside are; what inference mode made may be saved nevertheless."""
    with kept_switches("grad_mode", "inference_mode", "saves_inference_tensors"):
        set_grad_mode(True)
        set_switch("inference_mode", False)
        switches.saves_inference_tensors = True
        yield


@contextmanager
def transform_running() -> Iterator[Transform]:
    """A transform that records. See Note [Differentiating transforms]."""
    transform = Transform()
    with kept_switches("saved_tensor_hooks_disabled", "grad_mode"):
        disable_hooks(_HOOKS)
        set_grad_mode(True)
        with transform.running():
            yield transform


def below_levels(tensor: Any, levels: Sequence[VmapLevel]) -> Any:
    """The tensor with the examples of `levels` (outermost first) as its first dimensions."""
    for level in reversed(levels):
        tensor = without_level(tensor, level)
    return tensor


def above_levels(tensor: Any, levels: Sequence[VmapLevel]) -> Any:
    """The way back from `below_levels`."""
    for level in levels:
        tensor = with_level(tensor, level)
    return tensor


def track(value: Any, transform: Transform) -> Any:
    """An alias of an input at a place of its own in the graph."""
    if not isinstance(value, Tensor):
        found = kind_of(value) if is_pytorch_tensor(value) else type(value)
        raise ValueError(f"Thing passed to transform API must be Tensor, got {found}")
    places = places_of(value)
    levels = active_levels()
    if [level for level, _ in places] == levels:
        bottom = innermost(value)
    else:  # the same for all examples of a level: each gets a place of its own, else their gradients would be summed
        bottom, places = below_levels(value, levels), [(level, 0) for level in levels]
    if not is_float_or_complex(bottom._array.dtype):
        raise RuntimeError(f"only Tensors of floating point dtype can require gradients: got one of {value.dtype}")
    if bottom._requires_grad:
        alias = G.alias(bottom)
        alias._made_in = transform
        alias.grad_fn.require_extra().transform = transform
    else:
        alias = without_history(bottom)
        alias._requires_grad = True
        alias._tracked_by = transform  # type: ignore[attr-defined]  # who the leaf belongs to
    return mark_uniform(wrapped_at(alias, places), value)


def mark_uniform(tensor: Any, value: Any) -> Any:
    """Note at which levels the examples of `tensor` are the same, since those of `value` are. See Note [Uniform batches]."""
    given = {t._level: t._uniform for t in _batches(value)}
    for batch in _batches(tensor):
        level = batch._level
        if given.get(level, level.randomness != "different"):
            batch._uniform = level.has_uniform = True
    return tensor


def _batches(tensor: Any) -> Iterator[BatchedTensor]:
    """The batched tensors that one is made of, innermost vmap first."""
    while isinstance(tensor, BatchedTensor):
        yield tensor
        tensor = tensor._value


def enter(tree: Any, transform: Transform) -> Any:
    """Arguments that are not differentiated, as the function may modify them: aliases that belong to the transform."""
    if not tree:
        return tree
    return tree_map(lambda value: _entered(value, transform) if isinstance(value, Tensor) else value, tree)


def _entered(tensor: Any, transform: Transform) -> Any:
    if has_overrides() and type(tensor).__torch_function__ is not Tensor.__torch_function__:
        return tensor
    alias = G.alias(tensor) if tensor._requires_grad else without_history(tensor)
    alias._made_in = transform
    return alias


def leads_outside(tensor: Any, transform: Transform | None, inside: set[Any] | None = None) -> bool:
    """Whether the graph behind a tensor has a leaf other than those of `transform` and of transforms that are over.

    An Error counts as one: it must be met by whoever differentiates once more.
    `inside` collects the nodes behind which there is none, so that the next tensor's walk need not go there again.
    """
    edge = gradient_edge(tensor)
    known: set[Any] = set() if inside is None else inside
    if edge is None or edge[0] in known:
        return False
    waiting, seen = [edge[0]], {edge[0]}
    while waiting:
        node = waiting.pop()
        ends = True
        for following in node.next_edges:
            if following is not None:
                ends = False
                beyond = following[0]
                if beyond not in seen and beyond not in known:
                    seen.add(beyond)
                    waiting.append(beyond)
        if ends and _is_outside(node, transform):
            return True
    known |= seen
    return False


def _is_outside(node: Any, transform: Transform | None) -> bool:
    """Whether a node that leads no further is an Error, or the place of a leaf that is alive outside of `transform`."""
    if not isinstance(node, AccumulateGrad):
        return isinstance(node, Error)
    owner = getattr(node.variable, "_tracked_by", None)
    return owner is None or (owner is not transform and owner.open)


def release(tree: Any, transform: Transform, inside: set[Any] | None = None) -> Any:
    """Results as the world outside may see them: without history that leads to dead leaves only.

    `inside`: what `leads_outside` found of this transform already.
    """
    known: set[Any] = set() if inside is None else inside
    return tree_map(lambda value: _released(value, transform, known) if isinstance(value, Tensor) else value, tree)


def _released(value: Any, transform: Transform, inside: set[Any]) -> Any:
    bottom = innermost(value)
    if bottom._made_in is transform:
        bottom._made_in = switches.transform
    tangents = levels_of(bottom) if switches.dual_level >= 0 else ()
    if not bottom._requires_grad and not tangents:
        return value
    keeps_history = bottom._requires_grad and switches.grad_mode and leads_outside(bottom, transform, inside)
    bare = bottom if keeps_history or not bottom._requires_grad else without_history(bottom)
    for dual_level in tangents:
        set_tangent(bare, dual_level, _released(tangent_at(bare, dual_level), transform, inside))
    if bare is bottom:
        return value
    released = wrapped_at(bare, places_of(value))
    for batch, former in zip(_batches(released), _batches(value), strict=True):
        batch._uniform = former._uniform
    return released


def pull_back(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    create_graph: bool,
    keep_graph: bool = True,
) -> list[Any]:
    """Vector-Jacobian products, None where an input is not reached; any of the tensors may be batched, or be an edge.

    Levels at which the graph is batched are taken off all tensors; cotangents that are batched at further levels stay so,
    and the rules of backward run as operations on them.
    """
    levels = active_levels()
    recorded = [level for level in levels if any(level in levels_of_batch(t) for t in (*outputs, *inputs))]
    pairs = [
        (o if isinstance(o, GradientEdge) else below_levels(o, recorded), below_levels(c, recorded))
        for o, c in zip(outputs, cotangents, strict=True)
        if isinstance(o, GradientEdge) or o._requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    grads = [c if isinstance(o, GradientEdge) or c._array.dtype == o._array.dtype else c.to(o.dtype) for o, c in pairs]
    beyond = any(isinstance(c, BatchedTensor) for c in grads)
    create = create_graph or beyond or any(c._requires_grad or _is_dual(c) for c in grads)
    ends = [_edge_of(o) for o, _ in pairs]
    captures = [_edge_of(i) for i in inputs]
    kept = tuple([i for i in switches.interceptors if not (isinstance(i, VmapLevel) and i in recorded)])
    with switched("interceptors", kept):
        captured = engine.execute(
            [e for e in ends if e is not None], grads, keep_graph=keep_graph, create_graph=create,
            captures=[c for c in captures if c is not None], accumulate=False,
        )  # fmt: skip
    found = iter(captured)
    results = [next(found) if edge is not None else None for edge in captures]
    wrapped = [_result(r, create, places_of(i)) for r, i in zip(results, inputs, strict=True)]
    if any(level.has_uniform for level in recorded):
        _follow_uniform(wrapped, [*outputs, *cotangents], recorded)
    return wrapped


def _follow_uniform(results: Sequence[Any], given: Sequence[Any], levels: Sequence[VmapLevel]) -> None:
    """Mark gradients of uniform batches as uniform. See Note [Uniform batches]."""
    differing = {batch._level for value in given for batch in _batches(value) if not batch._uniform}
    for value in results:
        for batch in _batches(value):
            batch._uniform = batch._level in levels and batch._level not in differing


def _edge_of(value: Any) -> Any:
    if isinstance(value, GradientEdge):
        return value.node, value.output_nr
    return gradient_edge(innermost(value))


def _is_dual(tensor: Any) -> bool:
    return switches.dual_level >= 0


def _result(value: Any, is_tensor: bool, places: list[tuple[VmapLevel, int]]) -> Any:
    if value is None:
        return None
    return wrapped_at(value if is_tensor else _fresh(value), places)


def _fresh(value: Any) -> Any:
    from pullback.backend.array_module import as_array

    if isinstance(value, Tensor):
        value._counter = None  # a transform's pass counts as recorded, and sums out of place
        return value
    array = as_array(value)
    return new_tensor(array if array.flags.writeable else array.copy())
