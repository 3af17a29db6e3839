"""Shows the recorded graph behind a tensor: as a text tree, as DOT, or as an SVG drawn without any other program.

Reads only what users can read (`grad_fn`, `next_functions`, `variable`), so anything with these attributes can be
drawn. `make_dot` takes the arguments of torchviz's function of that name.
"""

from __future__ import annotations

import html
import itertools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pullback.graph.node import Node
from pullback.graph.source_lines import place_of
from pullback.utils.drawing import Drawing, make_dot_from_trace, resize_graph
from pullback.utils.graph_reading import Params, inputs_of, layer_of, names_of
from pullback.utils.layered_layout import lay_out

__all__ = [
    "Detail", "Drawing", "graph_tree", "make_dot", "make_dot_from_trace", "read_graph", "resize_graph", "save_svg",
]  # fmt: skip

Kind: TypeAlias = Literal["leaf", "operation", "output", "saved"]

COLOURS: dict[Kind, tuple[str, str]] = {
    "leaf": ("#dbeafe", "#3b82f6"),
    "operation": ("#f3f4f6", "#9ca3af"),
    "output": ("#dcfce7", "#22c55e"),
    "saved": ("#ffedd5", "#f97316"),
}
LABEL_ROOM = 36
"""So many characters of a tree's line are for the label: most fit."""
CHARACTER_WIDTH, LINE_HEIGHT, PADDING, MARGIN = 7.0, 16.0, 10.0, 16.0


class GraphNode(Protocol):
    """What is read of a node."""

    def name(self) -> str:
        """The node's name, such as `MulBackward0`."""

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of its inputs."""


@dataclass(frozen=True)
class Box:
    """One box of the picture: an output, an operation, a leaf, or a tensor that an operation saved."""

    lines: tuple[str, ...]
    kind: Kind


@dataclass
class GraphPicture:
    """Boxes, and arrows between them (as positions in `boxes`) in the direction of the forward computation."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[int, int]] = field(default_factory=list)

    def add(self, box: Box) -> int:
        """Add a box and return its position."""
        self.boxes.append(box)
        return len(self.boxes) - 1

    def _repr_html_(self) -> str:
        return svg_text(self)


@dataclass(frozen=True)
class Detail:
    """How much of each node is shown."""

    accumulators: bool = False
    attributes: bool = False
    saved_tensors: bool = False
    max_characters: int = 50
    source_lines: bool = False

    def inputs_of(self, node: GraphNode) -> list[Any]:
        """The nodes that lead to this one; a layer is shown whole unless what its steps saved is asked for."""
        if self.attributes or self.saved_tensors:
            return [following for following, _ in node.next_functions if following is not None]
        return inputs_of(node)


def read_graph(tensors: Any, params: Params = None, detail: Detail | None = None) -> GraphPicture:
    """Read the graph behind one tensor or several; `params` names its leaves, as a mapping, pairs or a module."""
    names = names_of(params)
    detail = detail or Detail()
    picture = GraphPicture()
    positions: dict[GraphNode, int] = {}
    waiting: list[tuple[GraphNode, int]] = []
    for tensor in tensors if isinstance(tensors, list | tuple) else [tensors]:
        label = names.get(id(tensor), "output")
        output = picture.add(Box((label, _shape_text(tensor)), "output"))
        if tensor.grad_fn is not None:
            waiting.append((tensor.grad_fn, output))
    while waiting:
        node, consumer = waiting.pop()
        if node not in positions:
            positions[node] = _add_node(picture, node, names, detail)
            waiting.extend((following, positions[node]) for following in reversed(detail.inputs_of(node)))
        picture.arrows.append((positions[node], consumer))
    return picture


def _add_node(picture: GraphPicture, node: GraphNode, names: Mapping[int, str], detail: Detail) -> int:
    leaf = getattr(node, "variable", None)
    if leaf is None:
        return _add_operation(picture, node, names, detail)
    leaf_box = Box((names.get(id(leaf), "leaf"), _shape_text(leaf)), "leaf")
    if not detail.accumulators:
        return picture.add(leaf_box)
    accumulator = picture.add(Box((_short_name(node),), "operation"))
    picture.arrows.append((picture.add(leaf_box), accumulator))
    return accumulator


def _add_operation(picture: GraphPicture, node: GraphNode, names: Mapping[int, str], detail: Detail) -> int:
    saved = _saved_values(node) if detail.attributes or detail.saved_tensors else []
    name = node.name() if detail.attributes or detail.saved_tensors else _shown_name(node)
    lines = [name, *_node_shape(node), *(_node_place(node) if detail.source_lines else ())]
    if detail.attributes:
        lines += [f"{name} = {_value_text(value)}"[: detail.max_characters] for name, value in saved]
    position = picture.add(Box(tuple(lines), "operation"))
    if detail.saved_tensors:
        for name, value in saved:
            if hasattr(value, "grad_fn"):
                label = names.get(id(value), name)
                picture.arrows.append((picture.add(Box((label, _shape_text(value)), "saved")), position))
    return position


def _saved_values(node: GraphNode) -> list[tuple[str, Any]]:
    """What the node saved for its backward, by name; what has been released is told as such."""
    values = []
    for attribute in dir(node):
        if attribute.startswith("_saved_"):
            try:
                value = getattr(node, attribute)
            except RuntimeError:
                value = "released"
            values.append((attribute.removeprefix("_saved_"), value))
    return values


def _value_text(value: Any) -> str:
    return f"tensor {_shape_text(value)}" if hasattr(value, "grad_fn") else str(value)


def _shown_name(node: GraphNode) -> str:
    layer = layer_of(node)
    return f"{layer}: {node.name()}" if layer else node.name()


def _short_name(node: GraphNode) -> str:
    return node.name().rpartition("::")[2]


def _shape_text(tensor: Any) -> str:
    return str(tuple(tensor.shape))


def _node_shape(node: GraphNode) -> tuple[str, ...]:
    """The shapes of what the node's operation returned, if the node tells."""
    metadata = getattr(node, "_input_metadata", None) or ()
    shapes = [str(tuple(entry.shape)) for entry in metadata if getattr(entry, "shape", None) is not None]
    return (", ".join(shapes[:3]) + (", ..." if len(shapes) > 3 else ""),) if shapes else ()


def _node_place(node: GraphNode) -> tuple[str, ...]:
    """The source line that recorded the node, which it knows if it was asked to remember it."""
    place = place_of(node) if isinstance(node, Node) else None
    return () if place is None else (f"{Path(place[0]).name}:{place[1]}",)


def graph_tree(
    tensor: Any, params: Params = None, max_depth: int = 60, *, show_saved: bool = False, show_lines: bool = False,
    width: int | None = None,
) -> str:  # fmt: skip
    """Return the graph behind `tensor` as indented text; a node met again is only named.

    What lies deeper than `max_depth` is left out. `show_saved` adds what each node saved for its backward,
    `show_lines` the source line that recorded it, where that is known. No line is longer than `width`, which is that of
    the terminal: what would be goes on below, under a number.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> print(graph_tree((x * x).sum(), {"x": x}))
    SumBackward0 ()
    └── MulBackward0 (3,)
        ├── x (3,)
        └── x (3,) (seen above)
    """
    names = names_of(params)
    if tensor.grad_fn is None:
        return f"{names.get(id(tensor), 'leaf')} {_shape_text(tensor)}"
    tree = _Tree(
        names, max_depth, show_saved, show_lines, shutil.get_terminal_size().columns if width is None else width
    )
    tree.add(tensor.grad_fn)
    return "\n".join(tree.lines)


@dataclass
class _Tree:
    """The lines of a tree while they are written."""

    names: Mapping[int, str]
    max_depth: int
    show_saved: bool
    show_lines: bool
    width: int
    lines: list[str] = field(default_factory=list)
    seen: set[GraphNode] = field(default_factory=set)
    continued: dict[GraphNode, int] = field(default_factory=dict)
    """Nodes that go on below, with their numbers."""

    def add(self, root: GraphNode) -> None:
        """Write the tree below a node, then the parts that found no room."""
        self._add_part(root, "", 0)
        for number, (node, depth) in enumerate(self._parts, 1):  # the list grows while it is read
            self._add_part(node, f"[{number}] ", depth)

    def __post_init__(self) -> None:
        self._parts: list[tuple[GraphNode, int]] = []

    def _add_part(self, root: GraphNode, mark: str, first_depth: int) -> None:
        waiting: list[tuple[GraphNode, str, str, int]] = [(root, mark, "", first_depth)]
        while waiting:
            node, first_indent, indent, depth = waiting.pop()
            if depth > self.max_depth:
                self.lines.append(first_indent + "...")
                continue
            inputs = self._inputs_of(node)
            if node in self.seen:
                self._write(first_indent + self._label(node) + " (seen above)")
                continue
            if indent and inputs and self._is_full(indent, node):
                self.lines.append(first_indent + f"goes on at [{self._number(node, depth)}]")
                continue
            self.seen.add(node)
            self._write_node(node, first_indent, indent + ("│   " if inputs else "    "))
            for position, following in reversed(list(enumerate(inputs))):
                is_last = position == len(inputs) - 1
                branch, straight = ("└── ", "    ") if is_last else ("├── ", "│   ")
                waiting.append((following, indent + branch, indent + straight, depth + 1))

    def _inputs_of(self, node: GraphNode) -> list[Any]:
        return Detail(attributes=self.show_saved).inputs_of(node)

    def _label(self, node: GraphNode) -> str:
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            return f"{self.names.get(id(leaf), 'leaf')} {_shape_text(leaf)}"
        name = node.name() if self.show_saved else _shown_name(node)
        return " ".join((name, *_node_shape(node), *(_node_place(node) if self.show_lines else ())))

    def _write(self, line: str) -> None:
        self.lines.append(line if len(line) <= self.width else line[: self.width - 1] + "…")

    def _write_node(self, node: GraphNode, first_indent: str, indent: str) -> None:
        """The line of a node, and what it saved: beside it where that fits, otherwise below."""
        line = first_indent + self._label(node)
        saved = [f"  {name}={_value_text(value)}" for name, value in _saved_values(node)] if self.show_saved else []
        for text in saved:
            if len(line + text) > self.width:
                self._write(line)
                line = indent
            line += text
        self._write(line)

    def _is_full(self, indent: str, node: GraphNode) -> bool:
        """Whether there is no room for the node or its inputs; a node that waits below stays there."""
        return node in self.continued or len(indent) + LABEL_ROOM + 4 > self.width

    def _number(self, node: GraphNode, depth: int) -> int:
        if node not in self.continued:
            self._parts.append((node, depth))
            self.continued[node] = len(self._parts)
        return self.continued[node]


def svg_text(picture: GraphPicture) -> str:
    """Draw a picture as the text of an SVG file that needs nothing else."""
    sizes = [
        (max(map(len, box.lines)) * CHARACTER_WIDTH + 2 * PADDING, len(box.lines) * LINE_HEIGHT + PADDING)
        for box in picture.boxes
    ]
    layout = lay_out(sizes, picture.arrows)
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" font-family="ui-monospace, monospace" '
        'font-size="11" text-anchor="middle">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 Z" fill="#6b7280"/></marker></defs>',
        f'<rect x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="100%" height="100%" fill="white"/>',
    ]
    for (start, end), route in zip(picture.arrows, layout.routes, strict=True):
        parts.append(_svg_arrow(route, sizes[start][1], sizes[end][1]))
    for box, centre, size in zip(picture.boxes, layout.centres, sizes, strict=True):
        parts.append(_svg_box(box, centre, size))
    return "\n".join([*parts, "</svg>", ""])


def _svg_arrow(route: list[tuple[float, float]], start_height: float, end_height: float) -> str:
    (x, y), (end_x, end_y) = route[0], route[-1]
    points = [(x, y + start_height / 2), *route[1:-1], (end_x, end_y - end_height / 2)]
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (next_x, next_y) in itertools.pairwise(points):
        middle = (y + next_y) / 2
        path += f" C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{next_y:.1f}"
    return f'<path d="{path}" fill="none" stroke="#6b7280" marker-end="url(#tip)"/>'


def _svg_box(box: Box, centre: tuple[float, float], size: tuple[float, float]) -> str:
    (x, y), (width, height) = centre, size
    fill, stroke = COLOURS[box.kind]
    radius = 3 if box.kind == "leaf" else 9
    first_line = y - (len(box.lines) - 1) * LINE_HEIGHT / 2 + 4
    texts = "".join(
        f'<text x="{x:.1f}" y="{first_line + number * LINE_HEIGHT:.1f}">{html.escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    return (
        f'<g><rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius}" fill="{fill}" stroke="{stroke}"/>{texts}</g>'
    )


def save_svg(tensors: Any, path: str | Path, params: Params = None, *, show_lines: bool = False) -> Path:
    """Write a picture of the graph behind one tensor or several to `path`, which ends in `.svg`.

    >>> import pullback, tempfile
    >>> w = pullback.ones(2, requires_grad=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = save_svg((w * w).sum(), f"{folder}/graph.svg", {"w": w}).read_text()
    >>> text.startswith("<svg")
    True
    """
    path = Path(path)
    path.write_text(svg_text(read_graph(tensors, params, Detail(source_lines=show_lines))), encoding="utf-8")
    return path


def dot_statements(picture: GraphPicture) -> list[str]:
    """Write the boxes and arrows of a picture as statements of graphviz's DOT language."""
    statements = []
    for position, box in enumerate(picture.boxes):
        label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
        statements.append(f'\t{position} [label="{label}" fillcolor="{COLOURS[box.kind][0]}"]\n')
    return statements + [f"\t{start} -> {end}\n" for start, end in picture.arrows]


def make_dot(
    var: Any,
    params: Params = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> Drawing:
    """Return a drawing of the graph behind `var`, a tensor or a tuple of tensors; `params` names its leaves.

    `show_attrs` lists the source line of each operation and what it saved, in at most `max_attr_chars` characters;
    `show_saved` draws the tensors among it as boxes of their own.

    >>> import pullback
    >>> w = pullback.ones(2, requires_grad=True)
    >>> drawing = make_dot((w * w).sum(), {"w": w})
    >>> "MulBackward0" in drawing.source
    True
    """
    picture = read_graph(var, params, Detail(True, show_attrs, show_saved, max_attr_chars, source_lines=show_attrs))
    drawing = Drawing(dot_statements(picture), lambda: svg_text(picture))
    drawing.node_attr.update(fontname="monospace", fontsize="10", shape="box", style="filled")
    resize_graph(drawing)
    return drawing
