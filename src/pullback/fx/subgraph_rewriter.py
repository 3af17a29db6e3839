"""Finding a pattern in a graph and putting something else in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pullback.fx._symbolic_trace import symbolic_trace
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule, _copy_attr
from pullback.fx.node import Node, nodes_in

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was found: its last node, and the graph's node for each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def _as_graph(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


class _Matcher:
    """Compares a pattern with a graph, from its results to its inputs."""

    def __init__(self, pattern: Graph) -> None:
        self.pattern = pattern
        self.results = nodes_in(pattern.output_node().args)

    def match(self, graph: Graph) -> list[Match]:
        """All places of the pattern that do not overlap, first ones first."""
        found: list[Match] = []
        taken: set[Node] = set()
        for candidate in graph.nodes:
            mapping: dict[Node, Any] = {}
            if len(self.results) != 1 or not self._same(self.results[0], candidate, mapping):
                continue
            inner = {n for p, n in mapping.items() if p.op != "placeholder"}
            if taken & inner or not self._is_closed(mapping, inner):
                continue
            taken |= inner
            found.append(Match(candidate, mapping))
        return found

    def _same(self, wanted: Any, given: Any, mapping: dict[Node, Any]) -> bool:
        if not isinstance(wanted, Node):
            return self._same_value(wanted, given, mapping)
        if wanted in mapping:
            return mapping[wanted] is given
        if wanted.op != "placeholder":
            if not isinstance(given, Node) or wanted.op != given.op or wanted.target != given.target:
                return False
            mapping[wanted] = given
            if not self._same_value((wanted.args, wanted.kwargs), (given.args, given.kwargs), mapping):
                return False
        mapping[wanted] = given
        return True

    def _same_value(self, wanted: Any, given: Any, mapping: dict[Node, Any]) -> bool:
        if isinstance(wanted, (tuple, list)):
            if not isinstance(given, (tuple, list)) or len(wanted) != len(given):
                return False
            return all(self._same(w, g, mapping) for w, g in zip(wanted, given, strict=True))
        if isinstance(wanted, dict):
            if not isinstance(given, dict) or set(wanted) != set(given):
                return False
            return all(self._same(wanted[k], given[k], mapping) for k in wanted)
        return not isinstance(given, Node) and type(wanted) is type(given) and bool(wanted == given)

    def _is_closed(self, mapping: dict[Node, Any], inner: set[Node]) -> bool:
        """Whether nothing outside uses what is computed on the way."""
        result = mapping[self.results[0]]
        return all(node is result or all(user in inner for user in node.users) for node in inner)


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, for the matches that all filters accept."""
    wanted = _as_graph(pattern)
    replaced: list[ReplacedPatterns] = []
    gone: dict[Node, Any] = {}
    for match in _Matcher(wanted).match(gm.graph):
        if not all(accept(match, gm.graph, wanted) for accept in match_filters or []):
            continue
        graph = (
            _as_graph(replacement) if replacement_callback is None else replacement_callback(match, gm.graph, wanted)
        )
        replaced.append(_replace(gm, wanted, graph, match, gone))
    gm.recompile()
    if isinstance(replacement, GraphModule):
        _copy_missing(gm, replacement)
    return replaced


def _replace(
    gm: GraphModule, pattern: Graph, replacement: Graph, match: Match, gone: dict[Node, Any]
) -> ReplacedPatterns:
    """Put a replacement in the place of a match. `gone` are results of former matches, with what stands for them."""
    found = [match.nodes_map[n] for n in pattern.nodes if n.op == "placeholder" and n in match.nodes_map]
    inputs = [gone.get(node, node) if isinstance(node, Node) else node for node in found]
    values: dict[Node, Any] = dict(zip([n for n in replacement.nodes if n.op == "placeholder"], inputs, strict=False))
    known = set(values)
    with gm.graph.inserting_before(match.anchor):
        result = gm.graph.graph_copy(replacement, values)
    made = [value for node, value in values.items() if node not in known]
    match.anchor.replace_all_uses_with(result)
    gone[match.anchor] = result
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output") and node in match.nodes_map:
            gm.graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchor, match.nodes_map, made)


def _copy_missing(gm: GraphModule, replacement: GraphModule) -> None:
    for node in gm.graph.nodes:
        if (
            node.op in ("call_module", "get_attr")
            and not _has(gm, str(node.target))
            and _has(replacement, str(node.target))
        ):
            _copy_attr(replacement, gm, str(node.target))


def _has(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Put `replacement` in every place of the graph where `pattern` is found.

    >>> import operator
    >>> traced = symbolic_trace(lambda x: (x + 1) * 2)
    >>> matches = replace_pattern(traced, lambda x: x + 1, lambda x: x - 3)
    >>> [node.target.__name__ for node in traced.graph.nodes if node.op == "call_function"]
    ['sub', 'mul']
    """
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]
