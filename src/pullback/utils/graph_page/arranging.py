"""Arranges the items of each group in rows: which row, in which order, and where arrows pass between them.

The page gives them coordinates, since how large an item is depends on whether it is open. What is decided here does
not: rows by longest path and orders by barycentre, as for pictures (utils/layered_layout.py), once per group.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

from pullback.utils.graph_page.folding import Group
from pullback.utils.graph_page.node_table import Row
from pullback.utils.layered_layout import assign_rows, order_rows, split_long_arrows

__all__ = ["arrange"]


def arrange(root: Group, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Describe every group for the page, the root first.

    `items` are rows of the table (numbers from 0) and groups (-1 for group 1, and so on). `rows` hold positions in
    `items`; positions beyond are points that arrows pass. `chains` are the ways of arrows between two items, `entries`
    and `exits` those of arrows from and to other groups, by the position of the item inside.
    """
    numbers, parents = _number(root)
    place_of_row: dict[int, tuple[int, ...]] = {}
    paths: list[tuple[int, ...]] = [()] * len(numbers)
    for number, group in enumerate(numbers):
        paths[number] = (*paths[parents[number]], number) if number else (0,)
        for item in group.items:
            if isinstance(item, int):
                place_of_row[item] = paths[number]
    arrows: list[set[tuple[int, int]]] = [set() for _ in numbers]
    entered: list[set[int]] = [set() for _ in numbers]
    left: list[set[int]] = [set() for _ in numbers]
    for end, row in enumerate(rows):
        for start in row.inputs:
            _add_arrow(start, end, place_of_row, arrows, entered, left)
    index = {id(group): number for number, group in enumerate(numbers)}
    return [
        _describe(group, parents[number], index, arrows[number], entered[number], left[number])
        for number, group in enumerate(numbers)
    ]


def _number(root: Group) -> tuple[list[Group], list[int]]:
    """All groups, each after the group around it, and the number of that one."""
    groups, parents = [root], [0]
    for number, group in enumerate(groups):  # the list grows while it is read
        for item in group.items:
            if isinstance(item, Group):
                groups.append(item)
                parents.append(number)
    return groups, parents


def _add_arrow(
    start: int, end: int, places: dict[int, tuple[int, ...]], arrows: list[set[tuple[int, int]]],
    entered: list[set[int]], left: list[set[int]],
) -> None:  # fmt: skip
    """Note an arrow in the innermost group that holds both ends, and where it leaves and enters the groups within."""
    path, other = (*places[start], ~start), (*places[end], ~end)
    shared = 0
    while path[shared] == other[shared]:
        shared += 1
    arrows[path[shared - 1]].add((_item(path[shared]), _item(other[shared])))
    for group, item in itertools.pairwise(path[shared:]):
        left[group].add(_item(item))
    for group, item in itertools.pairwise(other[shared:]):
        entered[group].add(_item(item))


def _item(step: int) -> int:
    """A step of a path as an item: a row as its position, a group as minus its number."""
    return ~step if step < 0 else -step


def _describe(
    group: Group, parent: int, index: dict[int, int], arrows: set[tuple[int, int]], entered: set[int], left: set[int]
) -> dict[str, Any]:
    items = [-index[id(item)] if isinstance(item, Group) else item for item in group.items]
    position = {item: place for place, item in enumerate(items)}
    pairs = _without_cycles(len(items), sorted((position[start], position[end]) for start, end in arrows))
    rows = assign_rows(len(items), pairs)
    last = max(rows, default=0)
    entries, exits = [position[item] for item in sorted(entered)], [position[item] for item in sorted(left)]
    chains, _, all_rows = split_long_arrows(pairs, rows, [1.0] * len(items))
    ways_in: dict[int, list[int]] = {}
    ways_out: dict[int, list[int]] = {}
    for place in entries:
        ways_in[place] = [_waypoint(all_rows, row) for row in range(rows[place])]
    for place in exits:
        ways_out[place] = [_waypoint(all_rows, row) for row in range(rows[place] + 1, last + 1)]
    links = [link for chain in chains for link in itertools.pairwise(chain)]
    links += [link for place, way in ways_in.items() for link in itertools.pairwise([*way, place])]
    links += [link for place, way in ways_out.items() for link in itertools.pairwise([place, *way])]
    return {
        "name": group.name, "kind": group.kind, "path": group.path, "parent": parent, "repeats": group.repeats,
        "items": items,
        "rows": order_rows(all_rows, links),
        "chains": chains,
        "entries": {str(place): way for place, way in ways_in.items()},
        "exits": {str(place): way for place, way in ways_out.items()},
    }  # fmt: skip


def _without_cycles(count: int, arrows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Turn round as few arrows as it takes that none leads back: modules that are used twice make cycles of groups."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arrows:
        after[start].append(end)
        waiting[end] += 1
    rank: dict[int, int] = {}
    ready = [item for item in range(count) if waiting[item] == 0]
    rest = iter(range(count))
    while len(rank) < count:
        item = heapq.heappop(ready) if ready else next(other for other in rest if other not in rank)
        if item in rank:
            continue
        rank[item] = len(rank)
        for following in after[item]:
            waiting[following] -= 1
            if waiting[following] == 0:
                heapq.heappush(ready, following)
    return sorted({(a, b) if rank[a] < rank[b] else (b, a) for a, b in arrows})


def _waypoint(all_rows: list[int], row: int) -> int:
    all_rows.append(row)
    return len(all_rows) - 1
