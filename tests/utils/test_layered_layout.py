"""The layout keeps boxes apart, arrows pointing down, and does not recurse."""

from __future__ import annotations

import itertools
import random

import pytest

from pullback.utils.layered_layout import lay_out

Size = tuple[float, float]


def random_graph(seed: int, count: int) -> tuple[list[Size], list[tuple[int, int]]]:
    generator = random.Random(seed)
    sizes = [(generator.uniform(20, 120), generator.uniform(20, 60)) for _ in range(count)]
    arrows = [tuple(sorted(generator.sample(range(count), 2))) for _ in range(2 * count)]
    return sizes, [(start, end) for start, end in arrows]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap(seed: int) -> None:
    sizes, arrows = random_graph(seed, 30)
    centres = lay_out(sizes, arrows).centres
    for (a, size_a), (b, size_b) in itertools.combinations(zip(centres, sizes, strict=True), 2):
        apart_across = abs(a[0] - b[0]) >= (size_a[0] + size_b[0]) / 2
        apart_down = abs(a[1] - b[1]) >= (size_a[1] + size_b[1]) / 2
        assert apart_across or apart_down


@pytest.mark.parametrize("seed", range(5))
def test_arrows_point_down_and_boxes_stay_inside(seed: int) -> None:
    sizes, arrows = random_graph(seed, 30)
    layout = lay_out(sizes, arrows)
    assert all(layout.centres[start][1] < layout.centres[end][1] for start, end in arrows)
    for (x, y), (width, height) in zip(layout.centres, sizes, strict=True):
        assert width / 2 - 1e-9 <= x <= layout.width - width / 2 + 1e-9
        assert height / 2 - 1e-9 <= y <= layout.height - height / 2 + 1e-9


def test_route_leads_from_box_to_box_through_each_row() -> None:
    layout = lay_out([(10, 10)] * 3, [(0, 1), (1, 2), (0, 2)])
    assert layout.routes[2][0] == layout.centres[0]
    assert layout.routes[2][-1] == layout.centres[2]
    assert len(layout.routes[2]) == 3


def test_chain_of_many_boxes_is_laid_out() -> None:
    layout = lay_out([(10.0, 10.0)] * 3000, [(box, box + 1) for box in range(2999)])
    assert len({x for x, _ in layout.centres}) == 1


def test_nothing_is_laid_out() -> None:
    assert lay_out([], []).centres == []
