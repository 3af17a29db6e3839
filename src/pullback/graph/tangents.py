"""Forward mode: tangents on tensors, and carrying them through an operation.

# Note [Tangent levels]
A tensor may have a tangent at each open level. For level L an operation's tangent function runs on primals without the
tangents of L and above, under a dual level of L - 1: what it computes carries the tangents of the lower levels along, so
levels nest without being confused.

# Note [Missing tangents]
The tangent of a * b is a's times b plus b's times a. Where b has none, the second term is left out; in PyTorch it is zeros
times a, so that the tangent depends on a in the graph, with the gradient zero. `connected` says the same without the
product: a constant Hessian can be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import has_internal_overlap, may_share_memory
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.graph.saved_tensor import PackedTensor, SavedOutput
from pullback.graph.views import view_like
from pullback.modes.switches import switched, switches
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import VersionCounter


def tangents_flow(*inputs: Any) -> bool:
    """Whether tangents are on and one of the inputs has one."""
    return switches.forward_grad and any(map(levels_of, inputs))


def levels_of(value: Any) -> tuple[int, ...]:
    """List the levels at which a tensor, or one of a list of tensors, has a tangent; for a tensor, in order."""
    if isinstance(value, Tensor):
        extra = value._extra
        if extra is None:
            return ()
        known = extra.tangents
        if extra.view is not None and (base := extra.view.base._extra) is not None and base.tangents:
            known = {**base.tangents, **(known or {})}
        return tuple([level for level, key in enumerate(switches.dual_ids) if key in known]) if known else ()
    if isinstance(value, (list, tuple)):
        return tuple({level for item in value for level in levels_of(item)})
    return ()


def tangent_at(value: Any, level: int) -> Any:
    """The tangent at `level`, None without one; a list for a list."""
    if isinstance(value, Tensor):
        extra = value._extra
        if extra is None or not 0 <= level < len(switches.dual_ids):
            return None
        key = switches.dual_ids[level]
        own = extra.tangents.get(key) if extra.tangents else None
        return own if own is not None or extra.view is None else _tangent_of_base(value, extra.view.base, level)
    if isinstance(value, (list, tuple)):
        return [tangent_at(item, level) for item in value]
    return None


def _tangent_of_base(view: Tensor, base: Tensor, level: int) -> Any:
    """Make the tangent of a view that is older than its base's tangent: the same view of that."""
    tangent = base._extra.tangents.get(switches.dual_ids[level]) if base._extra and base._extra.tangents else None
    if tangent is None:
        return None
    seen = view_like(tangent, view)
    set_tangent(view, level, seen)
    return seen


def set_tangent(tensor: Tensor, level: int, tangent: Tensor) -> None:
    """Give `tensor` a tangent at `level`."""
    extra = tensor._require_extra()
    if extra.tangents is None:
        extra.tangents = {}
    extra.tangents[switches.dual_ids[level]] = tangent


def without_tangents(value: Any, level: int) -> Any:
    """An alias on the same place of the graph that has no tangent at `level` or above."""
    if isinstance(value, (list, tuple)):
        return [without_tangents(item, level) for item in value]
    levels = levels_of(value) if isinstance(value, Tensor) else ()
    if not levels or levels[-1] < level:
        return value
    alias = new_tensor(value._array)
    if value._counter is None:
        value._counter = VersionCounter()
    alias._counter = value._counter
    alias._requires_grad = value._requires_grad
    if value._requires_grad:
        edge = gradient_edge(value)
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            alias._accumulator = edge[0].variable._accumulator
        alias._edge = None if edge is None or isinstance(edge[0], AccumulateGrad) else edge
    for known in levels:
        if known < level:
            set_tangent(alias, known, tangent_at(value, known))
    return alias


def without_history(tensor: Tensor) -> Tensor:
    """An alias with the tangents of `tensor` but without its place in the graph; none is an inference tensor."""
    return tensor._at_bottom(_without_history)


def _without_history(tensor: Tensor) -> Tensor:
    alias = new_tensor(tensor._array)
    extra = tensor._extra
    if extra is None or not extra.inference:
        if tensor._counter is None:
            tensor._counter = VersionCounter()
        alias._counter = tensor._counter
    if extra is not None:
        alias._share_mirror(tensor)
    for level in levels_of(tensor):
        set_tangent(alias, level, tangent_at(tensor, level))
    return alias


def carry_tangents(
    results: Any, tangent_function: Callable[..., Any], arguments: Sequence[Any], inputs: Sequence[Any]
) -> None:
    """Compute the results' tangents at every level that an input has. See Note [Tangent levels]."""
    levels = sorted({level for value in inputs for level in levels_of(value)})
    for level in levels:
        stripped = [without_tangents(a, level) for a in arguments]
        tangents = [tangent_at(value, level) for value in inputs]
        primal = without_tangents(results, level)
        with switched("dual_level", level - 1):
            computed = tangent_function(primal, *stripped, *tangents)
            if computed is None:
                continue
            if isinstance(results, tuple):
                computed = [_apart(c, result, tangents) for c, result in zip(computed, results, strict=True)]
            else:
                computed = _apart(computed, results, tangents)
        if isinstance(results, tuple):
            for result, tangent in zip(results, computed, strict=True):
                if tangent is not None and tangent._array.dtype.kind in "fcV":
                    set_tangent(result, level, tangent)
        else:
            set_tangent(results, level, computed)
    for result in results if isinstance(results, tuple) else (results,):
        if result._edge is not None:
            give_saved_tangents(result)


def _apart(tangent: Any, result: Tensor, given: Sequence[Any]) -> Any:
    """Put a new result's tangent into memory of its own: later writes to the result also write to the tangent.

    The tangent of a view shares the memory of its base's.
    """
    extra = result._extra
    if tangent is None or (extra is not None and extra.view is not None):
        return tangent
    shared = has_internal_overlap(tangent._array) or any(share_memory(tangent, other) for other in given)
    return tangent.clone() if shared else tangent


def share_memory(tangent: Tensor, other: Any) -> bool:
    """Whether a tensor may lie in the memory of another one, or of one of a list."""
    if isinstance(other, (list, tuple)):
        return any(share_memory(tangent, item) for item in other)
    return other is not None and (other is tangent or may_share_memory(tangent._array, other._array))


def give_saved_tangents(result: Tensor) -> None:
    """Give the result that a node saved its tangents: the node's backward may be differentiated too."""
    edge, extra = result._edge, result._extra
    assert edge is not None
    if extra is None:
        return
    for name in edge[0].saved_names:
        saved: Any = getattr(edge[0], f"saved_{name}", None)
        if _is_saved(saved, result, edge[1]):
            saved.tangents = extra.tangents


def _is_saved(saved: Any, result: Tensor, output_nr: int) -> bool:
    if isinstance(saved, PackedTensor):
        return saved.output_nr == output_nr
    return isinstance(saved, SavedOutput) and saved._array is result._array


def zeros_like_input(tensor: Any) -> Any:
    """The tangent of an input that has none."""
    return None if tensor is None else new_tensor(_zeros(tensor))


def _zeros(tensor: Tensor) -> Any:
    from pullback.backend.array_module import zeros_beside

    return zeros_beside(tensor._array, tensor._array.shape, tensor._array.dtype)


def conjugate(tensor: Any) -> Any:
    """The conjugate of a complex tensor or number, a real one itself."""
    if not isinstance(tensor, Tensor):
        return tensor.conjugate()
    if tensor._array.dtype.kind not in "cW":
        return tensor
    from pullback.generated import (
        conjugated,
    )  # lazy: above this layer. Not the lazy view of `Tensor.conj`, a copy is cheaper

    return conjugated(tensor)


def sum_of_terms(terms: list[Any], result: Tensor) -> Any:
    """The sum of what the inputs' tangents contribute, in the result's shape and dtype."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if total._array.shape != result._array.shape:
        total = total.expand(result._array.shape)
    if total._array.dtype != result._array.dtype:
        total = total.to(result.dtype)
    return total


def connected(tangent: Any, present: Sequence[Any], missing: Sequence[Any]) -> Any:
    """A tangent that in the graph depends on what the missing terms read, too. See Note [Missing tangents]."""
    if not switches.records:
        return tangent
    for value in missing:
        if isinstance(value, Tensor) and value._requires_grad and not any(value is other for other in present):
            from pullback.generated import depending_on  # lazy: above this layer

            if isinstance(tangent, tuple):
                tangent = (
                    None if tangent[0] is None else depending_on(tangent[0], value, "AddBackward0"),
                    *tangent[1:],
                )
            else:
                tangent = depending_on(tangent, value, "AddBackward0")
    return tangent


def forward_not_implemented(name: str) -> NotImplementedError:
    """Make the error about an operation without a tangent."""
    return NotImplementedError(
        f"Trying to use forward AD with {name} that does not support it because it has not been implemented yet."
    )
