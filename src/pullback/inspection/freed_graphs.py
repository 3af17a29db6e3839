"""Diagnosing a graph whose saved values are gone: what the leaves and their gradients still say."""

from __future__ import annotations

import math

from pullback.backend.array_module import as_array
from pullback.graph.node import Node
from pullback.inspection.finding import (
    Diagnosis,
    blame_leaf,
    doubted,
    first_bad,
    known_operands,
    operations_in_order,
    unravel,
)
from pullback.inspection.nodes import is_finite, leaves_behind
from pullback.inspection.replaying import replayed
from pullback.inspection.singular_points import (
    CUSTOM,
    GROWING,
    OPAQUE,
    deciding_operands,
    divides_by_differences,
    has_domain,
    has_singular_points,
    how_it_breaks,
    is_outside,
    is_pole,
    is_singular,
    operation_of,
    sees_rows,
)
from pullback.tensor.tensor import Tensor

_FREED = "the graph was freed; retain_graph=True tells more"


def diagnose_freed(loss: Tensor, nodes: list[Node]) -> Diagnosis | None:
    """The operations below which every gradient is bad, those with infinite derivatives first."""
    bad = [leaf for leaf in leaves_behind(loss) if leaf.grad is not None and not is_finite(leaf.grad._array)]
    if not is_finite(loss._array):
        return _of_forward(loss, nodes)
    if not bad:
        return None
    sane = {id(leaf) for leaf in leaves_behind(loss) if leaf.grad is not None} - {id(leaf) for leaf in bad}
    reached = _leaves_below(nodes)
    guilty = {id(leaf) for leaf in bad}
    inner = [node for node in nodes if not hasattr(node, "variable")]
    suspects = [node for node in inner if reached[node] & guilty and not reached[node] & sane]
    known = [found for node in suspects if (found := _by_leaf(node)) is not None]
    if known:
        return known[0]
    candidates = [node for node in suspects if _divides(node)]
    candidates.sort(
        key=lambda node: how_it_breaks(operation_of(node)) == "with its exponent"
    )  # gone: most are harmless
    growing = [node for node in suspects if how_it_breaks(operation_of(node)) in (*GROWING, OPAQUE, CUSTOM)]
    grown = next((node for node, result in replayed(growing).items() if not is_finite(result._array)), None)
    if grown is not None and not candidates:
        has_nan = any((leaf.grad._array != leaf.grad._array).any() for leaf in bad if leaf.grad is not None)
        return doubted(Diagnosis(grown, "zero_times_infinity" if has_nan else "overflow"), _FREED, [])
    candidates = candidates or growing or suspects
    if not candidates:
        return Diagnosis(None, "nan_came_in")
    came_in = any(not is_finite(leaf._array) for leaf in bad)
    kind = "division_by_zero" if _divides(candidates[0]) else "nan_came_in" if came_in else "unknown"
    return doubted(Diagnosis(candidates[0], kind), _FREED, candidates[1:])


def _divides(node: Node) -> bool:
    operation = operation_of(node)
    return has_singular_points(operation) or divides_by_differences(operation)


def _of_forward(loss: Tensor, nodes: list[Node]) -> Diagnosis:
    """The loss is not finite."""
    ordered = operations_in_order(nodes)
    for node in ordered:
        leaf = next(
            (value for _, value in known_operands(node) if not is_finite(getattr(value, "_array", value))), None
        )
        if leaf is not None:
            found = Diagnosis(node, "nan_came_in", forward=True)
            found.element = first_bad(leaf._array)
            found.operands = {"input": leaf._array[found.element].item()}
            return blame_leaf(found, "input", leaf)
    known = [by_leaf for node in ordered if (by_leaf := _by_leaf(node, forward=True)) is not None]
    if known:
        return known[0]
    breaking = [node for node in ordered if is_pole(operation_of(node)) or has_domain(operation_of(node))]
    is_infinite = not (loss._array != loss._array).any()
    growing = [node for node in ordered if is_infinite and how_it_breaks(operation_of(node)) in GROWING]
    if breaking:
        kind = "division_by_zero" if is_pole(operation_of(breaking[0])) else "domain"
        return doubted(Diagnosis(breaking[0], kind, forward=True), _FREED, [*breaking[1:], *growing])
    if growing:
        return doubted(Diagnosis(growing[0], "overflow", forward=True), _FREED, growing[1:])
    return doubted(Diagnosis(ordered[0], "nan_came_in", forward=True), _FREED, ordered[1:])


def _by_leaf(node: Node, forward: bool = False) -> Diagnosis | None:
    """A suspect whose operand is a leaf, which still has its value."""
    name = operation_of(node)
    for edge in node.next_edges:
        leaf = None if edge is None else getattr(edge[0], "variable", None)
        if leaf is None or not has_singular_points(name) or deciding_operands(name) is not None:
            continue
        flat = leaf._array.reshape(-1)
        for kind, bad in (("domain", is_outside(name, flat)), ("division_by_zero", is_singular(name, {}, flat))):
            flags = as_array(bad)
            if not flags.any() or (sees_rows(name) and not flags.all()):
                continue
            place = int(flags.nonzero()[0][0])
            if kind == "division_by_zero" and not forward and _has_nan_gradient(leaf, place):
                kind = "zero_times_infinity"
            found = Diagnosis(node, kind, forward=forward)
            found.element = unravel(place, leaf._array.shape)
            found.operands = {"input": flat[place].item()}
            return found
    return None


def _has_nan_gradient(leaf: Tensor, place: int) -> bool:
    """Whether the gradient at an element is NaN: a gradient that meets an infinite derivative is infinite unless it is 0."""
    return leaf.grad is not None and math.isnan(abs(leaf.grad._array.reshape(-1)[place].item()))


def _leaves_below(nodes: list[Node]) -> dict[Node, set[int]]:
    reached: dict[Node, set[int]] = {}
    for node in reversed(nodes):
        variable = getattr(node, "variable", None)
        own = set() if variable is None else {id(variable)}
        reached[node] = own.union(*[reached.get(edge[0], set()) for edge in node.next_edges if edge is not None])
    return reached
