"""Places the boxes of a directed acyclic graph in rows and routes its arrows around them.

Knows nothing of tensors or of drawing: sizes and arrows in, coordinates out. Arrows point downwards. The method is
the classical one in four steps: rows by longest path, invisible boxes where an arrow crosses a row, orders by
barycentre, positions by least squares under the constraint that neighbours keep their distance.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Layout", "assign_rows", "lay_out", "order_rows", "split_long_arrows"]

ROW_GAP = 34.0
COLUMN_GAP = 18.0
WAYPOINT_WIDTH = 8.0
SWEEPS = 8


@dataclass(frozen=True)
class Layout:
    """Centres of the boxes, the points that each arrow passes, and the size of the whole."""

    centres: list[tuple[float, float]]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes of the given (width, height), each arrow (from, to) leading to a lower row.

    >>> lay_out([(40, 20), (40, 20), (40, 20)], [(0, 2), (1, 2)]).centres
    [(20.0, 10.0), (78.0, 10.0), (49.0, 64.0)]
    """
    rows = assign_rows(len(sizes), arrows)
    chains, widths, rows = split_long_arrows(arrows, rows, [width for width, _ in sizes])
    links = [link for chain in chains for link in itertools.pairwise(chain)]
    ordered = order_rows(rows, links)
    across = _place_across(ordered, links, widths)
    heights = [0.0] * len(ordered)
    for box, (_, height) in enumerate(sizes):
        heights[rows[box]] = max(heights[rows[box]], height)
    middles = _stack(heights)
    points = [(across[box], middles[rows[box]]) for box in range(len(rows))]
    return Layout(
        centres=points[: len(sizes)],
        routes=[[points[box] for box in chain] for chain in chains],
        width=max((x + width / 2 for x, width in zip(across, widths, strict=True)), default=0.0),
        height=sum(heights) + ROW_GAP * max(len(heights) - 1, 0),
    )


def assign_rows(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Number the rows from the top; each box stands as low as the arrows that leave it allow."""
    successors: list[list[int]] = [[] for _ in range(count)]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for start, end in arrows:
        successors[start].append(end)
        predecessors[end].append(start)
    distance = [0] * count
    waiting = [len(after) for after in successors]
    ready = [box for box in range(count) if waiting[box] == 0]
    while ready:
        box = ready.pop()
        for before in predecessors[box]:
            distance[before] = max(distance[before], distance[box] + 1)
            waiting[before] -= 1
            if waiting[before] == 0:
                ready.append(before)
    deepest = max(distance, default=0)
    return [deepest - steps for steps in distance]


def split_long_arrows(
    arrows: Sequence[tuple[int, int]], rows: Sequence[int], widths: Sequence[float]
) -> tuple[list[list[int]], list[float], list[int]]:
    """Put a narrow waypoint into each row that an arrow crosses; return chains of boxes, all widths and all rows."""
    all_rows, all_widths, chains = list(rows), list(widths), []
    for start, end in arrows:
        chain = [start]
        for row in range(rows[start] + 1, rows[end]):
            chain.append(len(all_rows))
            all_rows.append(row)
            all_widths.append(WAYPOINT_WIDTH)
        chains.append([*chain, end])
    return chains, all_widths, all_rows


def _neighbours(count: int, links: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for start, end in links:
        below[start].append(end)
        above[end].append(start)
    return above, below


def order_rows(rows: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Order each row so that boxes stand near the boxes they are linked to."""
    ordered: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for box, row in enumerate(rows):
        ordered[row].append(box)
    above, below = _neighbours(len(rows), links)
    position = [0.0] * len(rows)
    for row_boxes in ordered:
        for place, box in enumerate(row_boxes):
            position[box] = place
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        linked = above if downwards else below
        for row_boxes in ordered if downwards else reversed(ordered):
            row_boxes.sort(key=lambda box: _mean([position[other] for other in linked[box]], position[box]))
            for place, box in enumerate(row_boxes):
                position[box] = place
    return ordered


def _place_across(
    ordered: Sequence[Sequence[int]], links: Sequence[tuple[int, int]], widths: Sequence[float]
) -> list[float]:
    """Give every box a horizontal centre, as near as possible to the mean of the boxes it is linked to."""
    across = [0.0] * len(widths)
    above, below = _neighbours(len(widths), links)
    for row in ordered:
        for box, x in zip(row, _keep_apart(row, [0.0] * len(row), widths), strict=True):
            across[box] = x
    for sweep in range(2 * SWEEPS):
        downwards = sweep % 2 == 1
        linked = above if downwards else below
        for row in ordered if downwards else reversed(ordered):
            wished = [_mean([across[other] for other in linked[box]], across[box]) for box in row]
            for box, x in zip(row, _keep_apart(row, wished, widths), strict=True):
                across[box] = x
    left = min((x - width / 2 for x, width in zip(across, widths, strict=True)), default=0.0)
    return [x - left for x in across]


def _keep_apart(row: Sequence[int], wished: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Move the boxes of a row the least (in squares) so that they keep their order and distance.

    With the distances subtracted this is isotonic regression, solved by pooling adjacent violators.
    """
    offsets = [0.0]
    for left, right in itertools.pairwise(row):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + COLUMN_GAP)
    pools: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=False):
        value, size = wish - offset, 1
        while pools and pools[-1][0] > value:
            other_value, other_size = pools.pop()
            value = (value * size + other_value * other_size) / (size + other_size)
            size += other_size
        pools.append((value, size))
    levels = [value for value, size in pools for _ in range(size)]
    return [level + offset for level, offset in zip(levels, offsets, strict=False)]


def _stack(heights: Sequence[float]) -> list[float]:
    """The vertical centre of each row."""
    middles, top = [], 0.0
    for height in heights:
        middles.append(top + height / 2)
        top += height + ROW_GAP
    return middles


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
