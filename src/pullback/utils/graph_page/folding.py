"""Folds a large graph into groups: by module, repeated layers and repeated steps as one, long lists in blocks.

The result is a tree. Its leaves are rows of the table; a page opens and closes its groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pullback.utils.graph_page.node_table import Row

__all__ = ["Group", "fold", "infer_modules"]

MOST_ITEMS = 120
"""A group with more rows than this is divided into blocks: no layout, and no reader, takes more at a time."""
LONGEST_PERIOD = 60
FEWEST_REPEATS = 3
WIDEST_ROW = 8
"""So many operations that do not read each other stand side by side; more are shown as one."""


@dataclass
class Group:
    """A box that holds rows (by position in the table) and other groups, in the order of the computation."""

    name: str
    kind: str
    items: list[int | Group] = field(default_factory=list)
    repeats: int = 1
    """How many alike stand inside, where the group stands for a repetition."""
    path: str = ""
    """The path of the module that the group is."""

    def rows(self) -> list[int]:
        """All rows inside, however deep."""
        found: list[int] = []
        waiting: list[int | Group] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, Group):
                waiting.extend(reversed(item.items))
            else:
                found.append(item)
        return found


def fold(rows: Sequence[Row]) -> Group:
    """Build the tree of groups over a table."""
    infer_modules(rows)
    root = Group("", "root")
    by_path: dict[str, Group] = {"": root}
    order = _order_of_computation(rows)
    for position in order:
        _group_at(rows[position].module, by_path).items.append(position)
    _sort(root, _places(rows, order))
    signatures: dict[int, str] = {}
    _tidy(root, rows, signatures)
    return root


def infer_modules(rows: Sequence[Row]) -> None:
    """Where no module is known, give operations that of their parameters, or that of the operation before.

    An operation that reads parameters belongs to their module. Another probably runs in the forward of the module around
    the operation that it takes its latest input from.
    """
    if any(row.module for row in rows if row.kind == "operation"):
        return
    owned: set[int] = set()
    for position in _order_of_computation(rows):
        row = rows[position]
        if row.kind != "operation":
            continue
        own = {rows[given].module for given in row.inputs if rows[given].kind == "leaf" and rows[given].module}
        if own:
            row.module = _common_path(sorted(own))
            owned.add(position)
            continue
        before = [given for given in row.inputs if rows[given].kind == "operation"]
        if before:
            latest = max(before, key=lambda given: rows[given].sequence_nr)
            row.module = rows[latest].module.rpartition(".")[0] if latest in owned else rows[latest].module


def _common_path(paths: Sequence[str]) -> str:
    parts = [path.split(".") for path in paths]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) != 1:
            break
        shared.append(names[0])
    return ".".join(shared)


def _order_of_computation(rows: Sequence[Row]) -> list[int]:
    """Positions with inputs before what is computed from them, in the order in which they were recorded."""
    order: list[int] = []
    state = [0] * len(rows)
    stack = [position for position, row in enumerate(rows) if row.kind == "output"][::-1]
    while stack:
        position = stack[-1]
        if state[position] == 0:
            state[position] = 1
            given = sorted(set(rows[position].inputs), key=lambda p: rows[p].sequence_nr)
            stack.extend(p for p in reversed(given) if state[p] == 0)
            continue
        stack.pop()
        if state[position] == 1:
            state[position] = 2
            order.append(position)
    return order


def _group_at(path: str, by_path: dict[str, Group]) -> Group:
    """The group of a module's path; it and the groups around it are made where they are missing."""
    if path not in by_path:
        parent, _, name = path.rpartition(".")
        made = by_path[path] = Group(name, "module", path=path)
        _group_at(parent, by_path).items.append(made)
    return by_path[path]


def _places(rows: Sequence[Row], order: Sequence[int]) -> dict[int, float]:
    """Where each row stands in the computation; a leaf stands right before its first use."""
    places: dict[int, float] = {position: place for place, position in enumerate(order)}
    for position in reversed(order):
        for given in rows[position].inputs:
            if rows[given].kind == "leaf":
                places[given] = places[position] - 0.5
    return places


def _sort(group: Group, places: dict[int, float]) -> float:
    """Order the items by their first row; return the place of the first of all."""
    firsts = [(_sort(item, places) if isinstance(item, Group) else places[item]) for item in group.items]
    group.items = [item for _, item in sorted(zip(firsts, group.items, strict=True), key=lambda pair: pair[0])]
    return min(firsts, default=0)


def _tidy(group: Group, rows: Sequence[Row], signatures: dict[int, str]) -> None:
    """Unwrap groups of one row, collapse repetitions and divide long lists, from the inside out."""
    for item in group.items:
        if isinstance(item, Group):
            _tidy(item, rows, signatures)
    group.items = [_unwrapped(item) for item in group.items]
    signs = [_signature(item, rows, signatures) for item in group.items]
    period, repeats = _best_period(signs, 0) if signs else (1, 1)
    if _is_worth(period, repeats, group.items, rows) and period * repeats == len(signs):
        group.items, group.repeats = _steps(group.items, period), repeats
    else:
        group.items = _collapse(group.items, signs, rows)
    if len(group.items) > MOST_ITEMS:
        group.items = _in_blocks(group.items)


def _unwrapped(item: int | Group) -> int | Group:
    return item.items[0] if isinstance(item, Group) and len(item.items) == 1 and item.kind == "module" else item


def _signature(item: int | Group, rows: Sequence[Row], known: dict[int, str]) -> str:
    """A text that is equal for items that look alike: the same operations on the same shapes."""
    if isinstance(item, int):
        row = rows[item]
        return f"{row.kind}:{row.name if row.kind == 'operation' else row.label}:{row.outputs}"
    if id(item) not in known:
        inside = Counter(_signature(inner, rows, known) for inner in item.items)
        known[id(item)] = f"({item.kind} {sorted(inside.items())})"
    return known[id(item)]


def _collapse(items: list[int | Group], signs: list[str], rows: Sequence[Row]) -> list[int | Group]:
    """Put each run of a repeated pattern into one group: `layers.0` to `layers.10` of eleven, or the steps of a loop."""
    result: list[int | Group] = []
    position = 0
    while position < len(items):
        period, repeats = _best_period(signs, position)
        members = items[position : position + period * repeats]
        if _is_worth(period, repeats, members, rows):
            result.append(_repetition(members, period, repeats, rows))
        else:
            members = members[:1]
            result.extend(members)
        position += len(members)
    return result


def _is_worth(period: int, repeats: int, members: Sequence[int | Group], rows: Sequence[Row]) -> bool:
    """Whether a repetition is shown as one: a chain of single operations reads better as it is, unless it is long."""
    is_long = period > 2 or period * repeats > (WIDEST_ROW if _are_apart(members, rows) else MOST_ITEMS)
    return repeats >= FEWEST_REPEATS and (is_long or any(isinstance(item, Group) for item in members))


def _are_apart(members: Sequence[int | Group], rows: Sequence[Row]) -> bool:
    """Whether these are operations of which none reads another: the layout puts them side by side."""
    positions = {item for item in members if not isinstance(item, Group)}
    return len(positions) == len(members) and all(positions.isdisjoint(rows[item].inputs) for item in positions)


def _best_period(signs: list[str], start: int) -> tuple[int, int]:
    """The length of the pattern that begins here and covers the most, and how often it stands in a row."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, (len(signs) - start) // FEWEST_REPEATS) + 1):
        if signs[start] != signs[start + period]:
            continue
        repeats, position = 1, start + period
        while signs[position : position + period] == signs[start : start + period]:
            repeats += 1
            position += period
        if repeats >= FEWEST_REPEATS and period * repeats > best[0] * best[1]:
            best = (period, repeats)
    return best


def _steps(members: list[int | Group], period: int) -> list[int | Group]:
    """Each occurrence of the pattern as one item."""
    if period == 1:
        return members
    return [
        Group(f"step {number + 1}", "step", members[number * period : (number + 1) * period])
        for number in range(len(members) // period)
    ]


def _repetition(members: list[int | Group], period: int, repeats: int, rows: Sequence[Row]) -> Group:
    items = _steps(members, period)
    first, last = items[0], items[-1]
    name = "repeated"
    if isinstance(first, int):
        name = rows[first].label
    elif period == 1 and isinstance(last, Group):
        name = f"{first.name} … {last.name}"
    if len(items) > MOST_ITEMS:
        items = _in_blocks(items)
    return Group(name, "repeat", items, repeats)


def _in_blocks(items: list[int | Group]) -> list[int | Group]:
    """Consecutive items together, so that no level of the tree has too many."""
    size = max(MOST_ITEMS // 2, round(len(items) ** 0.5))
    return [
        Group(f"{start + 1} … {min(start + size, len(items))}", "block", items[start : start + size])
        for start in range(0, len(items), size)
    ]
