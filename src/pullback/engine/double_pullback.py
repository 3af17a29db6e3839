"""The tangent of an operation that has only a pullback: the pullback is linear in its cotangent, so it is pulled back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.engine.engine import engine
from pullback.graph.history import gradient_edge
from pullback.graph.tangents import without_history
from pullback.modes.grad_mode import set_grad_mode
from pullback.tensor.tensor import Tensor, new_tensor


class _Passing:
    """The owner of leaves that nobody will ask for: pullback.func drops history that leads only to such leaves."""

    open = False


_PASSING = _Passing()


def double_pullback(function: Callable[[list[Any]], Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """J v for `function` at `inputs`, as the gradient with respect to u of <J^T u, v>."""
    former = set_grad_mode(True)
    try:
        flat = _flatten(inputs)
        flat_tangents = _flatten(tangents)
        tracked = [t is not None and v is not None for t, v in zip(flat, flat_tangents, strict=True)]
        leaves = [recorded_leaf(t) if on else t for t, on in zip(flat, tracked, strict=True)]
        outputs = function(_restore(inputs, leaves))
        many = isinstance(outputs, tuple)
        wanted = list(outputs) if many else [outputs]
        used = [o for o in wanted if o._requires_grad]
        cotangents = [_leaf(o._array) for o in used]
        targets = [t for t, on in zip(leaves, tracked, strict=True) if on]
        pulled = gradients(used, cotangents, targets)
        pairs = [
            (p, v) for p, v in zip(pulled, [v for v, on in zip(flat_tangents, tracked, strict=True) if on], strict=True)
        ]
        pairs = [(p, v) for p, v in pairs if p is not None and p._requires_grad]
        pushed: list[Any] = [None] * len(used)
        if pairs:
            pushed = gradients([p for p, _ in pairs], [v for _, v in pairs], cotangents)
        found = iter(pushed)
        results = [next(found) if o._requires_grad else None for o in wanted]
        results = [_zeros_like(o) if r is None else r for o, r in zip(wanted, results, strict=True)]
        if not former or not any(isinstance(t, Tensor) and t._requires_grad for t in (*flat, *flat_tangents)):
            results = [None if r is None else without_history(r) for r in results]
        return tuple(results) if many else results[0]
    finally:
        set_grad_mode(former)


def gradients(outputs: list[Any], cotangents: list[Any], inputs: list[Any], *, create_graph: bool = True) -> list[Any]:
    """The gradients of leaves that `recorded_leaf` made, given those of outputs; the graph is kept.

    A leaf may be a view of a recorded tensor. The pass ends there: behind it lies the whole graph of the user.
    """
    edges = [edge for o in outputs if (edge := gradient_edge(o)) is not None]
    captures = [edge for i in inputs if (edge := gradient_edge(i)) is not None]
    grads = [c if c._array.dtype == o._array.dtype else c.to(o.dtype) for o, c in zip(outputs, cotangents, strict=True)]
    return engine.execute(
        edges,
        grads,
        keep_graph=True,
        create_graph=create_graph,
        captures=captures,
        accumulate=False,
        ends_at_captures=True,
    )


def _leaf(array: Any) -> Tensor:
    leaf = new_tensor(_zeros_array(array))
    leaf._requires_grad = True
    leaf._tracked_by = _PASSING  # type: ignore[attr-defined]  # see `_Passing`
    return leaf


def recorded_leaf(tensor: Tensor) -> Any:
    """A non-leaf that requires grad: the recorded tensor itself, or an alias of an unrecorded one that is."""
    if tensor._requires_grad:
        return tensor.view_as(tensor)
    alias = without_history(tensor)
    alias._requires_grad = True
    alias._tracked_by = _PASSING  # type: ignore[attr-defined]  # see `_Passing`
    return alias


def _zeros_array(array: Any) -> Any:
    from pullback.backend.array_module import zeros_beside

    return zeros_beside(array, array.shape, array.dtype)


def _zeros_like(tensor: Tensor) -> Tensor:
    return new_tensor(_zeros_array(tensor._array))


def _flatten(values: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            flat.extend(value)
        else:
            flat.append(value)
    return flat


def _restore(values: Sequence[Any], flat: list[Any]) -> list[Any]:
    found = iter(flat)
    return [[next(found) for _ in v] if isinstance(v, (list, tuple)) else next(found) for v in values]
