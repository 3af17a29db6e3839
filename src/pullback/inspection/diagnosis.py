"""`diagnose`: after a backward pass left a NaN or an infinity, which operation made it, where, of what, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.autograd.differentiation import make_grads, root_edges
from pullback.backend.array_module import as_array
from pullback.engine.engine import engine
from pullback.engine.stepping import Arrival, run_in_steps
from pullback.generated.registry import OPERATIONS
from pullback.graph.node import Node
from pullback.graph.saved_tensor import PackedTensor, SavedOutput, forward_name
from pullback.graph.source_lines import SourceLine, module_path_of, source_line_of
from pullback.inspection.nodes import acting_node, leaves_behind, nodes_behind, saved_values
from pullback.inspection.replaying import replayed
from pullback.kernels.comparison import isfinite
from pullback.report import lines_html
from pullback.tensor.tensor import Tensor

__all__ = ["Diagnosis", "diagnose"]

_REMEDIES = {
    "domain": "Keep the operand inside of the domain: clamp() it, or use a form that is defined there.",
    "overflow": "Compute in logarithms (logsumexp, log_softmax), clamp() the operand, or use a wider dtype.",
    "zero_times_infinity": (
        "Make the operand harmless before the operation, not its result: where(mask, operation(where(mask, x, 1.0)), 0.0)."
    ),
    "division_by_zero": "Add a small number to the operand, clamp() it away from zero, or leave such elements out.",
    "nan_came_in": "Look at where the data come from: isfinite(x).all() before the computation.",
    "unknown": "Look at the operands.",
}
_SENTENCES = {
    "domain": "the operand is outside of the domain of {operation}",
    "overflow": "the result is too large for the dtype",
    "zero_times_infinity": "a gradient of zero met an infinite derivative, and 0 * inf is NaN{branch}",
    "division_by_zero": "the derivative of {operation} divides by zero there",
    "nan_came_in": "a NaN or an infinity came in with the operands",
    "unknown": "{operation} made it of finite numbers",
}


def _zero(value: Any) -> Any:
    return value == 0


# Of one number or of an array of them.
_SINGULAR: dict[str, Callable[[Any], Any]] = {
    "Log": _zero, "Log2": _zero, "Log10": _zero, "Sqrt": _zero, "Rsqrt": _zero, "Reciprocal": _zero, "Div": _zero,
    "Pow": _zero, "Norm": _zero, "LinalgVectorNorm": _zero, "Xlogy": _zero, "Atan2": _zero, "Lgamma": _zero, "Std": _zero,
    "Digamma": _zero, "Cdist": _zero, "Logit": lambda value: (value == 0) | (value == 1), "Log1P": lambda value: value == -1,
    "Acos": lambda value: abs(value) == 1, "Asin": lambda value: abs(value) == 1, "Atanh": lambda value: abs(value) == 1,
    "Acosh": lambda value: value == 1, "Erfinv": lambda value: abs(value) == 1,
}  # fmt: skip
"""Operations whose derivative is infinite at some operands."""
_OUTSIDE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Sqrt", "Rsqrt", "Xlogy"), lambda value: value < 0),
    "Log1P": lambda value: value < -1, "Acosh": lambda value: value < 1, "Logit": lambda value: (value < 0) | (value > 1),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Erfinv"), lambda value: abs(value) > 1),
}  # fmt: skip
_POLES = frozenset("Log Log2 Log10 Rsqrt Reciprocal Div Log1P Atanh Lgamma Digamma Logit Erfinv".split())
"""Those that are infinite there themselves."""
_DIVIDING = {"Div": ("other",), "Atan2": ("other", "input"), "Xlogy": ("other",)}
"""Which operands matter, where not all of them do."""


class Diagnosis:
    """The first operation that made a gradient (or the loss itself) infinite or NaN.

    `kind` is one of "domain", "overflow", "zero_times_infinity", "division_by_zero", "nan_came_in", "unknown";
    `operation` the node, `line` the user's line that recorded it, `element` the index of the first such element,
    `operands` the values there by name (`incoming` and `outgoing` are gradients), `forward` whether already the forward
    computation made it. `certain` is False where only candidates are left, `doubt` says why; `others` are further ones.
    """

    def __init__(self, node: Node | None, kind: str, *, forward: bool = False, branch: bool = False) -> None:
        self.node = node
        self.kind = kind
        self.forward = forward
        self.operation = "the program" if node is None else node.name()
        self.line: SourceLine | None = source_line_of(node)
        self.module: str | None = module_path_of(node)
        self.element: tuple[int, ...] | None = None
        self.operands: dict[str, Any] = {}
        self.certain = True
        self.doubt = ""
        self.others: list[SourceLine] = []
        words = {
            "operation": self.operation if node is None else forward_name(self.operation).lower(),
            "branch": " (a branch that where() did not take)" if branch else "",
        }
        self.sentence = _SENTENCES[kind].format(**words)
        self.remedy = _REMEDIES[kind]

    def __str__(self) -> str:
        what = "The forward of" if self.forward else "The gradient of"
        doubt = "" if self.certain else f", probably: {self.doubt}"
        lines = [f"{what} {self.operation} is not finite{doubt}: {self.sentence} [{self.kind}]"]
        if self.line is not None:
            lines.append(f"  at {self.line.describe()}")
        if self.element is not None:
            values = ", ".join(f"{name} = {value}" for name, value in self.operands.items())
            lines.append(f"  element {list(self.element)}: {values}")
        return "\n".join([*lines, *[f"  or at {line.describe()}" for line in self.others], f"  {self.remedy}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return lines_html(str(self))


def diagnose(loss: Tensor, gradient: Any = None) -> Diagnosis | None:
    """Find the operation that made a gradient infinite or NaN; None where all is finite.

    It works after backward(), without any mode. Where the graph was kept (`retain_graph=True`, or before backward()), the
    pass is run again, without hooks and without changing any `.grad`, and the element and its operands are known. A graph
    that was freed is computed again where it depends on leaves and numbers alone; of others the operations that can have
    done it are left, judged by the leaves and their gradients.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 0.0], requires_grad=True)
    >>> loss = pullback.where(x > 0, x.log(), 0.0).sum()
    >>> loss.backward(retain_graph=True)
    >>> found = diagnose(loss)
    >>> found.operation, found.kind, found.element, found.operands["input"]
    ('LogBackward0', 'zero_times_infinity', (1,), 0.0)
    """
    nodes = nodes_behind(loss)
    if any(node.released for node in nodes):
        again = replayed(nodes).get(nodes[0])
        if again is not None and _same(again._array, loss._array):
            return diagnose(again, gradient)
        return _of_leaves(loss, nodes)
    if not _finite(loss._array):
        return _of_forward(loss, nodes)
    return _of_backward(loss, gradient)


def _of_backward(loss: Tensor, gradient: Any) -> Diagnosis | None:
    grads = make_grads((loss,), None if gradient is None else (gradient,), is_grads_batched=False)
    arrived: tuple[Any, ...] = ()
    has_branches = False
    for event in run_in_steps(engine, root_edges((loss,)), grads, keep_graph=True, only_look=True):
        if isinstance(event, Arrival):
            arrived = event.grads
            has_branches = has_branches or event.node.name().startswith("Where")
        elif all(_finite(grad) for grad in arrived):
            bad = next((grad for grad in event.grads if not _finite(grad)), None)
            if bad is not None:
                return _at_element(event.node, as_array(bad), arrived, has_branches)
        elif not event.edges:
            return None
    return None


def _at_element(node: Node, bad: Any, arrived: tuple[Any, ...], has_branches: bool) -> Diagnosis:
    """What is known of the first element that is not finite."""
    element = _first_bad(bad)
    operands = _operands(node, element, bad.shape)
    incoming = _value_at(arrived[0], element, bad.shape) if arrived and arrived[0] is not None else None
    result = bad[element].item()
    kind = _kind(node, operands, incoming, result)
    found = Diagnosis(node, kind, branch=has_branches)
    found.element = element
    found.operands = {**operands, "incoming": incoming, "outgoing": result}
    return found


def _of_forward(loss: Tensor, nodes: list[Node]) -> Diagnosis:
    """The forward computation gave no finite loss: the first value on the way that is not finite."""
    made = replayed(nodes)
    ordered = _operations_in_order(nodes)
    found = None
    unknown: list[Node] = []
    for node in ordered:
        found = _of_forward_node(node, made.get(node))
        if found is not None:
            break
        if node not in made and "result" not in dict(saved_values(node)):
            unknown.append(node)
    found = found or _of_value(loss.grad_fn, loss._array)
    if found.kind != "unknown" or not unknown or unknown[0] is found.node:
        return found
    return _doubted(Diagnosis(unknown[0], "nan_came_in", forward=True), "its operands were not kept", unknown[1:])


def _of_forward_node(node: Node, made: Tensor | None) -> Diagnosis | None:
    """What is not finite of the operands of a node, or of its result where that was computed again."""
    for name, value in _known_operands(node):
        array = as_array(getattr(value, "_array", value))
        bad = _breaks_at(node, name, array)
        if _finite(array) and bad is None:
            continue
        maker = value.grad_fn if isinstance(value, Tensor) else None
        if bad is not None or isinstance(value, SavedOutput) or maker is None:
            return _of_value(node, array, bad, name)
        return _of_value(maker, array)
    return None if made is None or _finite(made._array) else _of_value(node, made._array)


def _operations_in_order(nodes: list[Node]) -> list[Node]:
    return sorted((node for node in nodes if not hasattr(node, "variable")), key=lambda node: node.sequence_nr)


def _doubted(found: Diagnosis, doubt: str, others: list[Node]) -> Diagnosis:
    found.certain, found.doubt = False, doubt
    found.others = [line for node in others if (line := source_line_of(node)) is not None]
    return found


def _known_operands(node: Node) -> list[tuple[str, Any]]:
    """What a node saved, and the leaves that it was given, which nobody needs to save."""
    known = {name: value for name, value in saved_values(node) if not isinstance(value, PackedTensor)}
    acting = acting_node(node)
    names = OPERATIONS[acting.operation].differentiable_inputs if acting.operation in OPERATIONS else ()
    for name, edge in zip(names, acting.next_edges, strict=False):
        leaf = None if edge is None else getattr(edge[0], "variable", None)
        if leaf is not None:
            known.setdefault(name, leaf)
    return list(known.items())


def _breaks_at(node: Node, name: str, array: Any) -> tuple[int, ...] | None:
    """The first element of an operand at which the operation itself has no finite value."""
    operation = _operation(node)
    if array.dtype.kind != "f" or name == "result" or name not in _DIVIDING.get(operation, (name,)):
        return None
    bad = _OUTSIDE.get(operation, _never)(array)
    if operation in _POLES:
        bad = bad | _SINGULAR[operation](array)
    flat = as_array(bad).reshape(-1)
    return _unravel(int(flat.nonzero()[0][0]), array.shape) if flat.any() else None


def _of_value(node: Node | None, array: Any, bad: tuple[int, ...] | None = None, name: str = "result") -> Diagnosis:
    """A node whose result is not finite; `array` is the result, or its operand `name` with the bad element."""
    element = _first_bad(array) if bad is None else bad
    operands = {} if node is None else _operands(node, element, array.shape)
    value = array[element].item()
    kind = "unknown"
    if node is not None and (name == "result" or bad is not None):
        operands[name] = value
        finite = {key: at for key, at in operands.items() if key != "result"}
        kind = _kind(node, finite, None, operands.get("result", math.nan))
        if kind == "unknown" and _operation(node) in _OUTSIDE:
            kind = "domain"  # its operand was not saved
        elif kind == "overflow" and _operation(node) in _POLES:
            kind = "division_by_zero"
    elif node is not None:
        operands[name], kind = value, "nan_came_in"
    found = Diagnosis(node, kind, forward=True)
    found.element, found.operands = element, operands
    return found


def _of_leaves(loss: Tensor, nodes: list[Node]) -> Diagnosis | None:
    """The graph was freed: the operations below which every gradient is bad, those with infinite derivatives first."""
    bad = [leaf for leaf in leaves_behind(loss) if leaf.grad is not None and not _finite(leaf.grad._array)]
    if not bad:
        return None if _finite(loss._array) else _of_freed_forward(loss, nodes)
    sane = {id(leaf) for leaf in leaves_behind(loss) if leaf.grad is not None} - {id(leaf) for leaf in bad}
    reached = _leaves_below(nodes)
    guilty = {id(leaf) for leaf in bad}
    inner = [node for node in nodes if not hasattr(node, "variable")]
    suspects = [node for node in inner if reached[node] & guilty and not reached[node] & sane]
    known = [found for node in suspects if (found := _by_leaf(node)) is not None]
    if known:
        return known[0]
    candidates = [node for node in suspects if _operation(node) in _SINGULAR]
    if not candidates and not _finite(loss._array):
        return _of_freed_forward(loss, nodes)
    candidates = candidates or suspects
    if not candidates:
        return Diagnosis(None, "nan_came_in")
    came_in = any(not _finite(leaf._array) for leaf in bad)
    kind = "division_by_zero" if _operation(candidates[0]) in _SINGULAR else "nan_came_in" if came_in else "unknown"
    return _doubted(Diagnosis(candidates[0], kind), _FREED, candidates[1:])


_FREED = "the graph was freed; retain_graph=True tells more"


def _of_freed_forward(loss: Tensor, nodes: list[Node]) -> Diagnosis:
    """The loss is not finite, and the graph was freed."""
    ordered = _operations_in_order(nodes)
    for node in ordered:
        leaf = next((value for _, value in _known_operands(node) if not _finite(getattr(value, "_array", value))), None)
        if leaf is not None:
            return _of_value(node, leaf._array, None, "input")
    known = [found for node in ordered if (found := _by_leaf(node)) is not None]
    if known:
        known[0].forward = True
        return known[0]
    growing = [node for node in ordered if _operation(node) in {*_POLES, "Exp", "Pow"}]
    if growing and not (loss._array != loss._array).any():
        return _doubted(Diagnosis(growing[0], "overflow", forward=True), _FREED, growing[1:])
    return _doubted(Diagnosis(ordered[0], "nan_came_in", forward=True), _FREED, ordered[1:])


def _by_leaf(node: Node) -> Diagnosis | None:
    """A suspect whose operand is a leaf, which still has its value."""
    name = _operation(node)
    for edge in node.next_edges:
        leaf = None if edge is None else getattr(edge[0], "variable", None)
        if leaf is None or name not in _SINGULAR or name in _DIVIDING:
            continue
        flat = leaf._array.reshape(-1)
        for kind, is_bad in (("domain", _OUTSIDE.get(name, _never)), ("division_by_zero", _SINGULAR[name])):
            places = as_array(is_bad(flat)).nonzero()[0]
            if len(places):
                if kind == "division_by_zero" and _has_nan_gradient(leaf, int(places[0])):
                    kind = "zero_times_infinity"
                found = Diagnosis(node, kind)
                found.element = _unravel(int(places[0]), leaf._array.shape)
                found.operands = {"input": flat[places[0]].item()}
                return found
    return None


def _has_nan_gradient(leaf: Tensor, place: int) -> bool:
    """Whether the gradient at an element is NaN: a gradient that meets an infinite derivative is infinite unless it is 0."""
    return leaf.grad is not None and math.isnan(abs(leaf.grad._array.reshape(-1)[place].item()))


def _never(value: Any) -> Any:
    return value != value


def _leaves_below(nodes: list[Node]) -> dict[Node, set[int]]:
    reached: dict[Node, set[int]] = {}
    for node in reversed(nodes):
        variable = getattr(node, "variable", None)
        own = set() if variable is None else {id(variable)}
        reached[node] = own.union(*[reached.get(edge[0], set()) for edge in node.next_edges if edge is not None])
    return reached


def _kind(node: Node, operands: dict[str, Any], incoming: Any, result: Any) -> str:
    name = _operation(node)
    values = [operands[key] for key in _DIVIDING.get(name, operands) if isinstance(operands.get(key), int | float)]
    if any(math.isnan(value) or math.isinf(value) for value in operands.values() if isinstance(value, int | float)):
        return "nan_came_in" if not _made_infinite(node, operands) else "overflow"
    if incoming == 0 and result != result:
        return "zero_times_infinity"
    if any(_OUTSIDE.get(name, _never)(value) for value in values) or _is_root_of_negative(name, operands):
        return "domain"
    if any(_SINGULAR.get(name, _never)(value) for value in values):
        return "division_by_zero"
    return "overflow" if isinstance(result, int | float) and math.isinf(result) else "unknown"


def _made_infinite(node: Node, operands: dict[str, Any]) -> bool:
    """Whether the node itself made the infinity that it saved: its result overflowed."""
    saved = dict(saved_values(node))
    return all(
        isinstance(saved.get(name), SavedOutput)
        or (isinstance(saved.get(name), Tensor) and saved[name].grad_fn is not None)
        for name, value in operands.items()
        if isinstance(value, int | float) and not math.isfinite(value)
    ) and not any(isinstance(value, float) and math.isnan(value) for value in operands.values())


def _is_root_of_negative(name: str, operands: dict[str, Any]) -> bool:
    base, exponent = operands.get("input"), operands.get("exponent")
    if name != "Pow" or not isinstance(base, int | float) or not isinstance(exponent, int | float):
        return False
    return base < 0 and exponent != int(exponent)


def _operation(node: Node) -> str:
    return forward_name(node.name()).rstrip("0123456789")


def _operands(node: Node, element: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    """The saved operands at an element, where they have one there; numbers as they are."""
    found: dict[str, Any] = {}
    for name, value in _known_operands(node):
        at = _value_at(getattr(value, "_array", value), element, shape)
        if at is not None:
            found[name] = at
    acting = acting_node(node)
    for name in acting.value_names:
        value = getattr(acting, f"saved_{name}", None)
        if isinstance(value, int | float):
            found[name] = value
    for name in ("input", "other"):  # a number in the place of a tensor
        value = getattr(acting, f"saved_{name}", None)
        if isinstance(value, int | float):
            found.setdefault(name, value)
    return found


def _value_at(array: Any, element: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The value that broadcasting puts at an element; None where the array has another geometry."""
    array = as_array(array)
    if array.size == 1:
        return array.reshape(-1)[0].item()
    lead = len(shape) - array.ndim
    if lead < 0 or any(size not in (1, whole) for size, whole in zip(array.shape, shape[lead:], strict=True)):
        return None
    index = tuple([0 if size == 1 else place for size, place in zip(array.shape, element[lead:], strict=True)])
    return array[index].item()


def _same(one: Any, other: Any) -> bool:
    """Whether two arrays of one shape have the same values; NaN is the same as NaN."""
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _finite(value: Any) -> bool:
    """Whether all elements are; whole numbers and missing gradients are."""
    if value is None:
        return True
    array = as_array(value)
    return array.dtype.kind not in "fc" or bool(isfinite(array).all())


def _first_bad(array: Any) -> tuple[int, ...]:
    """The index of the first element that is not finite."""
    flat = array.reshape(-1)
    return _unravel(int((~isfinite(flat)).nonzero()[0][0]), array.shape)


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))
