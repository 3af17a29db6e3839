"""What the differentiating transforms share: inputs as fresh places of the graph, gradients under vmap, clean results.

# Note [Differentiating transforms]
grad, vjp and jvp run on the one ordinary graph. An input becomes an alias at a place of its own: a leaf, or a recorded
view where it requires grad already, so that outer transforms are reached through it. The graph lies below every vmap: an
input that is the same for all examples is first expanded to all of them, else its gradient would be the sum of theirs.
When a transform is over, its leaves are dead; results that lead to no other leaf lose their history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import is_float_or_complex
from pullback.engine.engine import engine
from pullback.func.batched_tensor import BatchedTensor, innermost_physical, levels_of_batch, with_level, without_level
from pullback.func.vmap_level import VmapLevel, active_levels
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.graph.tangents import levels_of, set_tangent, tangent_at, without_history
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.saved_tensor_hooks import disable_hooks, restore_hooks
from pullback.modes.switches import set_switch, switches
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.utils._pytree import tree_map

_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Use these outside of the transform."
)


class Transform:
    """One running transform; its leaves know it."""

    def __init__(self) -> None:
        self.open = True
        self.depth = switches.transforms + 1
        """The place among all running transforms, counted from the outermost."""


@contextmanager
def transform_running() -> Iterator[Transform]:
    """A transform with recording on, whatever the grad mode outside is. See Note [Differentiating transforms]."""
    transform = Transform()
    hooks = disable_hooks(_HOOKS)
    former = set_grad_mode(True)
    switches.transforms += 1
    try:
        yield transform
    finally:
        switches.transforms -= 1
        set_grad_mode(former)
        restore_hooks(hooks)


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
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    levels = active_levels()
    bottom = below_levels(value, levels)
    if not is_float_or_complex(bottom._array.dtype):
        raise RuntimeError(f"only Tensors of floating point dtype can require gradients: got one of {value.dtype}")
    if bottom._requires_grad:
        alias = G.alias(bottom)
        alias.grad_fn.require_extra().transform = transform
    else:
        alias = without_history(bottom)
        alias._requires_grad = True
        alias._transform = transform  # type: ignore[attr-defined]  # who the leaf belongs to
    return above_levels(alias, levels)


def leads_outside(tensor: Any, transform: Transform | None, inside: set[Any] | None = None) -> bool:
    """Whether the graph behind a tensor has a leaf other than those of `transform` and of transforms that are over.

    `inside` collects the nodes behind which there is none, so that the next tensor's walk need not go there again.
    """
    edge = gradient_edge(tensor)
    known: set[Any] = set() if inside is None else inside
    if edge is None or edge[0] in known:
        return False
    waiting, seen = [edge[0]], {edge[0]}
    while waiting:
        node = waiting.pop()
        if isinstance(node, AccumulateGrad):
            owner = getattr(node.variable, "_transform", None)
            if owner is None or (owner is not transform and owner.open):
                return True
        for following in node.next_edges:
            if following is not None and following[0] not in seen and following[0] not in known:
                seen.add(following[0])
                waiting.append(following[0])
    known |= seen
    return False


def release(tree: Any, transform: Transform | None) -> Any:
    """Results as the world outside may see them: without history that leads to dead leaves only."""
    recorded = switches.grad_mode
    inside: set[Any] = set()

    def is_over(tensor: Any) -> bool:
        return tensor._requires_grad and not (recorded and leads_outside(tensor, transform, inside))

    def clean(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        bottom = innermost_physical(value)
        tangents = levels_of(bottom) if switches.dual_level >= 0 else ()
        if not bottom._requires_grad and not tangents:
            return value
        bare = without_history(bottom) if is_over(bottom) else bottom
        for dual_level in tangents:
            tangent = tangent_at(bare, dual_level)
            if is_over(tangent):
                set_tangent(bare, dual_level, without_history(tangent))
        if bare is bottom:
            return value
        for level in reversed(levels_of_batch(value)):
            bare = level.wrap(bare)
        return bare

    return tree_map(clean, tree)


def pull_back(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    create_graph: bool,
    keep_graph: bool = True,
) -> list[Any]:
    """Vector-Jacobian products, None where an input is not reached; any of the tensors may be batched.

    Levels at which the graph is batched are taken off all tensors; cotangents that are batched at further levels stay so,
    and the rules of backward run as operations on them.
    """
    levels = active_levels()
    recorded = [level for level in levels if any(level in levels_of_batch(t) for t in (*outputs, *inputs))]
    pairs = [
        (below_levels(o, recorded), below_levels(c, recorded))
        for o, c in zip(outputs, cotangents, strict=True)
        if o._requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    grads = [c if c._array.dtype == o._array.dtype else c.to(o.dtype) for o, c in pairs]
    beyond = any(isinstance(c, BatchedTensor) for c in grads)
    create = create_graph or beyond or any(c._requires_grad or _is_dual(c) for c in grads)
    ends = [gradient_edge(o) for o, _ in pairs]
    captures = [gradient_edge(innermost_physical(i)) for i in inputs]
    kept = tuple([i for i in switches.interceptors if not (isinstance(i, VmapLevel) and i in recorded)])
    former = set_switch("interceptors", kept)
    try:
        captured = engine.execute(
            [e for e in ends if e is not None], grads, keep_graph=keep_graph, create_graph=create,
            captures=[c for c in captures if c is not None], accumulate=False,
        )  # fmt: skip
    finally:
        set_switch("interceptors", former)
    found = iter(captured)
    results = [next(found) if edge is not None else None for edge in captures]
    return [
        _result(r, create, [level for level in recorded if level in levels_of_batch(i)])
        for r, i in zip(results, inputs, strict=True)
    ]


def _is_dual(tensor: Any) -> bool:
    return switches.dual_level >= 0


def _result(value: Any, is_tensor: bool, levels: Sequence[VmapLevel]) -> Any:
    if value is None:
        return None
    return above_levels(value if is_tensor else _fresh(value), levels)


def _fresh(value: Any) -> Any:
    from pullback.backend.array_module import as_array

    array = as_array(value)
    return new_tensor(array if array.flags.writeable else array.copy())
