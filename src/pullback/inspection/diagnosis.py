"""`diagnose`: after a backward pass left a NaN or an infinity, which operation made it, where, of what, and why.

# Note [Post-mortem]
A loss that is not finite is looked at when `backward()` is about to free its graph, while the saved values are still there:
the cause is known to `diagnose(loss)` later, with the element and its operands. Where the loss is finite, that costs a look
at one number. Where it is not, what can be is computed again, for at most a twentieth of the time if that goes on. Nothing
is looked at while a mode is on: who intercepts operations would see them run again.
"""

from __future__ import annotations

import math
import weakref
from contextlib import suppress
from time import perf_counter
from typing import Any

from pullback.autograd.differentiation import make_grads, root_edges
from pullback.autograd.grad_mode import enable_grad
from pullback.backend.array_module import as_array, ones
from pullback.backend.logical_array import has_values
from pullback.engine.passes import current_graph_task
from pullback.engine.stepping import Arrival, run_in_steps
from pullback.facts import fact_of
from pullback.generated.registry import OPERATIONS
from pullback.graph.basic_nodes import Error
from pullback.graph.hooks import hook_name, hooks_of
from pullback.graph.node import Node
from pullback.graph.saved_tensor import SavedOutput
from pullback.graph.source_lines import source_line_of_hook
from pullback.inspection.finding import (
    Diagnosis,
    blame_leaf,
    doubted,
    first_bad,
    have_same_values,
    is_mean_of_nothing,
    known_operands,
    operands_at,
    operations_in_order,
    unravel,
    value_at,
)
from pullback.inspection.freed_graphs import diagnose_freed
from pullback.inspection.nodes import acting_node, held_arrays, is_finite, is_released, nodes_behind, saved_values
from pullback.inspection.replaying import replayed
from pullback.inspection.singular_points import (
    CUSTOM,
    GROWING,
    OPAQUE,
    deciding_operands,
    has_domain,
    how_it_breaks,
    is_outside,
    is_pole,
    is_singular,
    kind_of,
    operation_of,
)
from pullback.modes.kept_gradients import KeptGradients
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["Diagnosis", "diagnose"]


def diagnose(loss: Tensor, gradient: Any = None) -> Diagnosis | None:
    """Find the operation that made a gradient infinite or NaN; None where all is finite.

    It works after backward(), without any mode. Where the graph was kept (`retain_graph=True`, or before backward()), the
    pass is run again, without hooks and without changing any `.grad`, and the element and its operands are known. So they
    are where the loss itself was not finite. Of other graphs that were freed, those are computed again that depend on leaves
    and numbers alone; of the rest the operations that can have done it are left, judged by the leaves and their gradients.
    Inside of `vmap` the examples count in the first dimension of `element`.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 0.0], requires_grad=True)
    >>> loss = pullback.where(x > 0, x.log(), 0.0).sum()
    >>> loss.backward(retain_graph=True)
    >>> found = diagnose(loss)
    >>> found.operation, found.kind, found.element, found.operands["input"]
    ('LogBackward0', 'zero_times_infinity', (1,), 0.0)
    """
    if not isinstance(loss, Tensor):
        raise TypeError(f"diagnose expects a tensor, got {type(loss).__name__}")
    if not has_values(loss._array):  # one example of a batch: its graph is that of all of them
        whole = loss._bottom
        return diagnose(
            whole, new_tensor(ones(whole._array.shape, whole._array.dtype)) if gradient is None else gradient._bottom
        )
    nodes = nodes_behind(loss)
    if any(is_released(node) for node in nodes):
        known = _remembered.get(id(loss))
        if known is not None and known[0]() is loss:
            return known[1]
        again = replayed(nodes).get(nodes[0])
        if again is not None and have_same_values(again._array, loss._array):
            return diagnose(again, gradient)
        return diagnose_freed(loss, nodes)
    if not is_finite(loss._array):
        return _of_forward(loss, nodes, replayed(nodes), unpacks=True)
    return _of_backward(loss, gradient) or _of_earlier_pass(loss)


_remembered: dict[int, tuple[weakref.ref[Tensor], Diagnosis]] = {}
_LARGE = 2**28
"""Bytes of saved values beyond which nothing is computed again on suspicion: memory may be short."""


_SHARE = 0.05
_AT_FIRST = 5.0
"""Looks take at most this share of the time since the first of them, and these seconds."""


class Looks:
    """When the first loss was looked at that is not finite, and how long that and the later ones took, in seconds."""

    began: float | None = None
    taken = 0.0


def remember_cause(loss: Tensor) -> None:
    """Find out why a loss is not finite, for `diagnose` to tell once its graph is freed. See Note [Post-mortem]."""
    start = perf_counter()
    Looks.began = start if Looks.began is None else Looks.began
    if Looks.taken > _AT_FIRST + _SHARE * (start - Looks.began):
        return
    with suppress(Exception):  # a look that fails must not stop the pass
        nodes = nodes_behind(loss)
        held = sum(array.nbytes for node in nodes for _, value in saved_values(node) for array in held_arrays(value))
        found = _of_forward(loss, nodes, replayed(nodes) if held < _LARGE else {})
        number = id(loss)
        # The note goes with the loss: it holds a node, and so a graph.
        _remembered[number] = (weakref.ref(loss, lambda _: _remembered.pop(number, None)), found)
    Looks.taken += perf_counter() - start


def _of_earlier_pass(loss: Tensor) -> Diagnosis | None:
    """This pass is finite: a gradient that is not was there before, or a hook made it."""
    nodes = nodes_behind(loss)
    for node in nodes:
        grad = getattr(getattr(node, "variable", None), "grad", None)
        if grad is not None and not is_finite(grad._array):
            hooks = [hook for one in nodes for extra in (one.extra, _extra_of_leaf(one)) for hook in hooks_of(extra)]
            found = Diagnosis(node, "hook" if hooks else "earlier_pass")
            if hooks:
                found.line, *others = [source_line_of_hook(hook) for hook in hooks]
                found.others = [line for line in others if line is not None]
                found.certain, found.doubt = False, f"by the hook {hook_name(hooks[0])}, which does not run again here"
            found.element = first_bad(grad._array)
            found.operands = {"grad": grad._array[found.element].item()}
            return found
    return None


def _extra_of_leaf(node: Node) -> Any:
    return getattr(getattr(node, "variable", None), "_extra", None)


def _of_backward(loss: Tensor, gradient: Any) -> Diagnosis | None:
    return _of_sent([loss], make_grads((loss,), None if gradient is None else (gradient,), is_grads_batched=False))


def _of_sent(results: list[Tensor], grads: Any) -> Diagnosis | None:
    """The first node below results that makes a gradient infinite or NaN, given the gradients of these."""
    arrived: tuple[Any, ...] = ()
    has_branches = False
    with _PassesInside() as inside:
        for event in run_in_steps(root_edges(results), grads, keep_graph=True, only_look=True):
            if isinstance(event, Arrival):
                arrived = event.grads
                has_branches = has_branches or event.node.name().startswith("Where")
            elif all(is_finite(grad) for grad in arrived):
                bad = next((grad for grad in event.grads if not is_finite(grad)), None)
                if bad is not None:
                    found = inside.found or _inside(event.node, arrived)
                    return found or _at_element(event.node, as_array(bad), arrived, has_branches)
            elif not event.edges:
                return None
    return None


class _PassesInside(KeptGradients):
    """Finds the first node that makes a gradient infinite or NaN in the passes that nodes run inside of theirs."""

    found: Diagnosis | None = None

    def observe(self, node: Any, grads: Any, edges: Any, run: Any) -> Any:
        """Look while what the node saved is there."""
        results = run()
        task = current_graph_task()
        if self.found is None and task is not None and task.depth and all(is_finite(grad) for grad in grads):
            bad = next((grad for grad in results if not is_finite(grad)), None)
            if bad is not None:
                self.found = _at_element(node, as_array(bad), tuple(grads), False)
        return results


def _inside(node: Node, arrived: tuple[Any, ...]) -> Diagnosis | None:
    """What a function's own operations say: those of a compiled function, or of the backward of a custom one."""
    operation = operation_of(node)
    with suppress(Exception):  # what cannot run again is told of as a whole
        if operation == OPAQUE:
            results = _run_again(node)
            return _of_sent(
                results, [_as_gradient(grad, result) for grad, result in zip(arrived, results, strict=True)]
            )
        if operation == CUSTOM:
            return _of_custom(node, arrived)
    return None


def _run_again(node: Node) -> list[Tensor]:
    """The results of a compiled function with the graph of its own operations; none where it cannot run again."""
    again = getattr(acting_node(node), "again", None)
    return [] if again is None else list(again.results())


def _as_gradient(grad: Any, like: Tensor) -> Tensor:
    return new_tensor(as_array(grad) if grad is not None else like._array * 0)


def _of_custom(node: Node, arrived: tuple[Any, ...]) -> Diagnosis | None:
    """The operation in the backward of a custom Function that made a gradient infinite: it runs again, recorded."""
    with enable_grad():
        given = [None if grad is None else new_tensor(as_array(grad)).requires_grad_() for grad in arrived]
        sent = acting_node(node).apply_differentiable(given, node.next_edges)
    for grad in sent:
        if isinstance(grad, Tensor) and not is_finite(grad._array) and isinstance(grad.grad_fn, Node):
            nodes = nodes_behind(grad)
            if isinstance(nodes[0], Error):  # it is once differentiable: nothing was recorded
                return None
            found = _of_forward(grad, nodes, replayed(nodes))
            found.forward = False
            found.sentence = f"{found.sentence}, in the backward of the custom Function {node.name()}"
            return found
    return None


def _at_element(node: Node, bad: Any, arrived: tuple[Any, ...], has_branches: bool) -> Diagnosis:
    """What is known of the first element that is not finite."""
    element = first_bad(bad)
    operands = operands_at(node, element, bad.shape, unpacks=True)
    incoming = value_at(arrived[0], element, bad.shape) if arrived and arrived[0] is not None else None
    result = bad[element].item()
    kind = _kind(node, operands, math.nan if incoming is None else incoming, result)
    came_in = None if kind != "unknown" else _operand_that_came_in(node)
    if came_in is not None:
        name, array = came_in
        found = Diagnosis(node, "nan_came_in")
        found.element = first_bad(array)
        found.operands = {name: array[found.element].item()}
        return found
    found = Diagnosis(node, kind, branch=has_branches)
    found.element = element
    found.operands = {**operands, "incoming": incoming, "outgoing": result}
    return found


def _operand_that_came_in(node: Node) -> tuple[str, Any] | None:
    """An operand that is not finite, of an operation whose elements are not those of its result."""
    if operation_of(node) in (OPAQUE, CUSTOM):
        return None
    for name, value in known_operands(node, unpacks=True):
        if not isinstance(value, SavedOutput) and not is_finite(value._array if hasattr(value, "_array") else value):
            return name, as_array(value._array if hasattr(value, "_array") else value)
    return None


def _of_forward(loss: Tensor, nodes: list[Node], made: dict[Node, Tensor], *, unpacks: bool = False) -> Diagnosis:
    """The forward computation gave no finite loss: the first value on the way that is not finite."""
    found = None
    for node in operations_in_order(nodes):
        found = (
            _of_compiled(node)
            if operation_of(node) == OPAQUE
            else _of_forward_node(node, made.get(node), nodes, unpacks)
        )
        if found is not None:
            break
    found = found or _of_value(loss.grad_fn, loss._array)
    _add_operands(found, made)
    if (
        found.node is None
        or found.kind not in ("unknown", "domain", "overflow")
        or found.operands.keys() & {"input", "other", "exponent"}
    ):
        return found
    unknown = _unknown_before(found.node, made, nodes)
    if found.kind == "overflow" and not unknown:
        return found
    if found.kind == "overflow" and _may_break(found.node) and not any(map(_may_break, unknown)):
        return doubted(found, "its operand was not kept", unknown)
    if found.kind == "domain":
        return doubted(found, "its operand was not kept", unknown) if unknown else found
    if unknown:
        kind = kind_of(operation_of(unknown[0]), {}, None, math.nan)
        suspect = Diagnosis(unknown[0], "nan_came_in" if kind == "unknown" else kind, forward=True)
        suspect.element = found.element if len(unknown) == 1 and found.element == () else None
        if suspect.element is not None and kind != "unknown":
            return suspect
        return doubted(suspect, "its operands were not kept", [*unknown[1:], found.node])
    if not acting_node(found.node).operation:
        return found  # a custom Function, or a compiled one: what it computes is its own
    overflow = Diagnosis(found.node, "overflow", forward=True)  # an infinity less another, of operands that are finite
    overflow.element, overflow.operands = found.element, found.operands
    return overflow


def _of_compiled(node: Node) -> Diagnosis | None:
    """What the operations of a compiled function say, if one of its results is not finite."""
    with suppress(Exception):
        for result in _run_again(node):
            if not is_finite(result._array):
                nodes = nodes_behind(result)
                return _of_forward(result, nodes, replayed(nodes))
    return None


def _add_operands(found: Diagnosis, made: dict[Node, Tensor]) -> None:
    """Tell the operands at the element that were computed again."""
    node = found.node
    if node is None or found.element is None or node not in made:
        return
    acting = acting_node(node)
    operation = OPERATIONS.get(acting.operation)
    names = () if operation is None else operation.differentiable_inputs
    for name, edge in zip(names, acting.next_edges, strict=False):
        before = None if edge is None or edge[0].output_count > 1 else made.get(edge[0])
        at = None if before is None else value_at(before._array, found.element, made[node]._array.shape)
        if at is not None:
            found.operands.setdefault(name, at)


def _may_break(node: Node) -> bool:
    """Whether an operation gives infinities of numbers of ordinary size."""
    operation = operation_of(node)
    known_to_break = how_it_breaks(operation) in (*GROWING, OPAQUE, CUSTOM)
    return known_to_break or has_domain(operation) or is_pole(operation)


def _unknown_before(node: Node, made: dict[Node, Tensor], nodes: list[Node]) -> list[Node]:
    """The operations before a node whose results nobody knows, up to those that are known; first recorded first."""
    kept = {
        value.grad_fn for one in nodes for _, value in known_operands(one)
        if isinstance(value, Tensor) and is_finite(value._array)
    }  # fmt: skip
    waiting, unknown = [node], set[Node]()
    while waiting:
        for edge in waiting.pop().next_edges:
            before = None if edge is None else edge[0]
            if before is None or hasattr(before, "variable") or before in made or before in unknown or before in kept:
                continue
            if not any(isinstance(value, SavedOutput) for _, value in saved_values(before)):
                unknown.add(before)
                waiting.append(before)
    return sorted(unknown, key=lambda one: one.sequence_nr)


def _of_forward_node(node: Node, made: Tensor | None, nodes: list[Node], unpacks: bool) -> Diagnosis | None:
    """What is not finite of the operands of a node, or of its result where that was computed again."""
    if is_mean_of_nothing(node):
        found = Diagnosis(node, "division_by_zero", forward=True)
        found.element, found.operands = (0,) * len(node.shape or ()), {"result": math.nan}
        return found
    for name, value in known_operands(node, unpacks=unpacks):
        array = as_array(getattr(value, "_array", value))
        bad = _breaks_at(node, name, array)
        if is_finite(array) and bad is None:
            continue
        maker = value.grad_fn if isinstance(value, Tensor) else None
        if isinstance(value, SavedOutput):
            return _of_value(node, array)
        if bad is not None:
            return _of_value(node, array, bad, name)
        if maker is None:
            found = _of_value(node, array, bad, name)
            return blame_leaf(found, name, value) if isinstance(value, Tensor) else found
        if not _is_mask(maker, array, nodes):
            return _of_value(maker, array)
    if made is None or is_finite(made._array) or _is_mask(node, made._array, nodes):
        return None
    return _of_value(node, made._array)


def _is_mask(node: Node, array: Any, nodes: list[Node]) -> bool:
    """Whether a result has no infinity but -inf, and all that it goes to make zeros of it, as softmax does."""
    if bool(((array != array) | (array == math.inf)).any()):
        return False
    following = [one for one in nodes if any(edge is not None and edge[0] is node for edge in one.next_edges)]
    return bool(following) and all(fact_of(operation_of(one), "takes_minus_inf") for one in following)


def _breaks_at(node: Node, name: str, array: Any) -> tuple[int, ...] | None:
    """The first element of an operand at which the operation itself has no finite value."""
    operation = operation_of(node)
    if array.dtype.kind != "f" or name == "result" or name not in (deciding_operands(operation) or (name,)):
        return None
    bad = is_outside(operation, array)
    if is_pole(operation):
        bad = bad | is_singular(operation, {}, array)
    flat = as_array(bad).reshape(-1)
    return unravel(int(flat.nonzero()[0][0]), array.shape) if flat.any() else None


def _of_value(node: Node | None, array: Any, bad: tuple[int, ...] | None = None, name: str = "result") -> Diagnosis:
    """A node whose result is not finite; `array` is the result, or its operand `name` with the bad element."""
    element = first_bad(array) if bad is None else bad
    operands = {} if node is None else operands_at(node, element, array.shape)
    value = array[element].item()
    kind = "unknown"
    if node is not None and (name == "result" or bad is not None):
        outputs = {key for key, saved in saved_values(node) if isinstance(saved, SavedOutput)} | {"result"}
        operands[name] = value
        finite = {key: at for key, at in operands.items() if key not in outputs}
        kind = _kind(node, finite, None, operands.get("result", math.nan))
        if kind == "unknown" and has_domain(operation_of(node)):
            kind = "domain"  # its operand was not saved
        elif kind == "overflow" and is_pole(operation_of(node)):
            kind = "division_by_zero"
    elif node is not None:
        operands[name], kind = value, "nan_came_in"
    found = Diagnosis(node, kind, forward=True)
    found.element, found.operands = element, operands
    return found


def _kind(node: Node, operands: dict[str, Any], incoming: Any, result: Any) -> str:
    if any(math.isnan(value) or math.isinf(value) for value in operands.values() if isinstance(value, int | float)):
        if not _made_infinite(node, operands):
            return "nan_came_in"
        return "zero_times_infinity" if incoming == 0 and math.isnan(result) else "overflow"
    return kind_of(operation_of(node), operands, incoming, result)


def _made_infinite(node: Node, operands: dict[str, Any]) -> bool:
    """Whether the node itself made the infinity that it saved: its result overflowed."""
    saved = dict(saved_values(node))
    return all(
        isinstance(saved.get(name), SavedOutput)
        or (isinstance(saved.get(name), Tensor) and saved[name].grad_fn is not None)
        for name, value in operands.items()
        if isinstance(value, int | float) and not math.isfinite(value)
    ) and not any(isinstance(value, float) and math.isnan(value) for value in operands.values())
