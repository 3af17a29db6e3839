"""What `diagnose` found: the operation at which a value or a gradient stopped being finite, with its operands."""

from __future__ import annotations

from contextlib import suppress
from inspect import unwrap
from typing import Any

from pullback.backend.array_module import as_array
from pullback.generated.registry import OPERATIONS
from pullback.graph.node import Node
from pullback.graph.saved_tensor import PackedTensor, forward_name
from pullback.graph.source_lines import SourceLine, module_path_of, source_line_of
from pullback.inspection.nodes import acting_node, saved_values
from pullback.inspection.singular_points import OPAQUE, how_it_breaks, operation_of, wording_of
from pullback.kernels.comparison import isfinite
from pullback.report import lines_html
from pullback.tensor.tensor import Tensor


class Diagnosis:
    """The first operation that made a gradient (or the loss itself) infinite or NaN.

    `kind` is one of "domain", "overflow", "zero_times_infinity", "division_by_zero", "nan_came_in", "earlier_pass", "hook",
    "unknown"; `operation` the node, `line` the user's line that recorded it (or wrote the hook), `element` the index of the
    first such element, `operands` the values there by name (`incoming` and `outgoing` are gradients), `forward` whether
    already the forward computation made it. `certain` is False where only candidates are left, `doubt` says why; `others`
    are further ones.
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
            "operation": self.operation if node is None else _called(node),
            "branch": " (a branch that where() did not take)" if branch else "",
        }
        wording = wording_of("" if node is None else operation_of(node), kind)
        self.sentence = (wording.value if forward and wording.value else wording.derivative).format(**words)
        self.remedy = wording.remedy.format(code=_code_of(node, "forward" if forward else "backward"))

    def __str__(self) -> str:
        what = "The forward of" if self.forward else "The gradient of"
        doubt = "" if self.certain else f", probably: {self.doubt}"
        lines = [f"{what} {self.operation} is not finite{doubt}: {self.sentence} [{self.kind}]"]
        if self.line is not None:
            lines.append(f"  at {self.line.describe()}{f', in the module {self.module}' if self.module else ''}")
        if self.element is not None:
            values = ", ".join(f"{name} = {value}" for name, value in self.operands.items())
            lines.append(f"  element {list(self.element)}: {values}")
        others = dict.fromkeys(line.describe() for line in self.others)
        if self.line is not None:
            others.pop(self.line.describe(), None)
        return "\n".join([*lines, *[f"  or at {other}" for other in others], f"  {self.remedy}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return lines_html(str(self))


def _called(node: Node) -> str:
    """What a program calls the operation of a node."""
    operation = OPERATIONS.get(acting_node(node).operation)
    return forward_name(node.name()).lower() if operation is None else operation.message_name


def _code_of(node: Node | None, name: str) -> str:
    """Where the forward() or backward() of a custom Function stands."""
    function = getattr(getattr(None if node is None else acting_node(node), "_forward_cls", None), name, None)
    code = getattr(unwrap(function), "__code__", None) if callable(function) else None
    if code is None:
        return f"its {name}()"
    first = next((start for start, _, line in code.co_lines() if line not in (None, code.co_firstlineno)), 0)
    return f"its {name}(), at {SourceLine(code, first).describe()}"


def blame_leaf(found: Diagnosis, name: str, leaf: Tensor) -> Diagnosis:
    """Say of a leaf that is to learn, and is not finite itself, that a step before made it so."""
    if leaf.requires_grad and leaf.is_leaf:
        found.sentence = f"{found.sentence}: {name} is a leaf, and not finite itself"
        found.remedy = (
            "An optimizer's step made it so, or its first values. Diagnose the loss of the step before, and clip its "
            "gradients or make the learning rate smaller."
        )
    return found


def doubted(found: Diagnosis, doubt: str, others: list[Node]) -> Diagnosis:
    """Say of what was found that it is a guess, why, and which other operations can have done it."""
    found.certain, found.doubt = False, doubt
    found.others = [line for node in others if (line := source_line_of(node)) is not None]
    return found


def operations_in_order(nodes: list[Node]) -> list[Node]:
    """The nodes without the accumulators of leaves, first recorded first."""
    return sorted((node for node in nodes if not hasattr(node, "variable")), key=lambda node: node.sequence_nr)


def known_operands(node: Node, *, unpacks: bool = False) -> list[tuple[str, Any]]:
    """What a node saved, and the leaves that it was given, which nobody needs to save.

    With `unpacks` also what hooks packed (checkpoints, budgets, the user's), which they are asked for.
    """
    acting = acting_node(node)
    known: dict[str, Any] = {}
    for name, value in saved_values(node):
        if not isinstance(value, PackedTensor):
            known[name] = value
        elif unpacks and name in acting.tensor_names:
            with suppress(Exception):  # who packs may give it once
                known[name] = acting.unpack(name)
    names = OPERATIONS[acting.operation].differentiable_inputs if acting.operation in OPERATIONS else ()
    for name, edge in zip(names, acting.next_edges, strict=False):
        leaf = None if edge is None else getattr(edge[0], "variable", None)
        if leaf is not None:
            known.setdefault(name, leaf)
    return list(known.items())


def operands_at(
    node: Node, element: tuple[int, ...], shape: tuple[int, ...], *, unpacks: bool = False
) -> dict[str, Any]:
    """The saved operands at an element, where they have one there; numbers as they are."""
    found: dict[str, Any] = {}
    if operation_of(node) == OPAQUE:
        return found
    for name, value in known_operands(node, unpacks=unpacks):
        at = value_at(getattr(value, "_array", value), element, shape)
        if at is not None:
            found[name] = at
    acting = acting_node(node)
    for name in (*acting.value_names, *acting.saved_names, "input", "other"):  # numbers, also in the place of a tensor
        value = getattr(acting, f"saved_{name}", None)
        if isinstance(value, int | float):
            found.setdefault(name, value)
    return found


def value_at(array: Any, element: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The value that broadcasting puts at an element; None where the array has another geometry."""
    array = as_array(array)
    if array.size == 1:
        return array.reshape(-1)[0].item()
    lead = len(shape) - array.ndim
    if lead < 0 or any(size not in (1, whole) for size, whole in zip(array.shape, shape[lead:], strict=True)):
        return None
    index = tuple([0 if size == 1 else place for size, place in zip(array.shape, element[lead:], strict=True)])
    return array[index].item()


def is_mean_of_nothing(node: Node) -> bool:
    """Whether a node divides a sum of no elements by their count."""
    acting = acting_node(node)
    if how_it_breaks(operation_of(node)) != "as a mean" and getattr(acting, "saved_reduction", None) != 1:
        return False
    before = [edge[0] for edge in acting.next_edges if edge is not None]
    leaves = [getattr(one, "variable", None) for one in before]
    shapes = [one.shape if leaf is None else leaf.shape for one, leaf in zip(before, leaves, strict=True)]
    return any(shape is not None and 0 in shape for shape in shapes) and 0 not in (node.shape or ())


def first_bad(array: Any) -> tuple[int, ...]:
    """The index of the first element that is not finite."""
    flat = array.reshape(-1)
    return unravel(int((~isfinite(flat)).nonzero()[0][0]), array.shape)


def unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the element at a position of the flattened array."""
    index: list[int] = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


def have_same_values(one: Any, other: Any) -> bool:
    """Whether two arrays of one shape have the same values; NaN is the same as NaN."""
    return bool(((one == other) | ((one != one) & (other != other))).all())
