"""Counting floating-point operations."""

from __future__ import annotations

import pullback
from pullback import nn
from pullback.utils.flop_counter import FlopCounterMode


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4 * 36, 5)

    def forward(self, x: pullback.Tensor) -> pullback.Tensor:
        return self.head(self.conv(x).relu().flatten(1))


def test_products_and_convolutions_are_counted_by_module() -> None:
    with FlopCounterMode(display=False) as counter:
        Net()(pullback.ones(2, 3, 6, 6))
    found = {name: {str(op): n for op, n in counts.items()} for name, counts in counter.get_flop_counts().items()}
    assert counter.get_total_flops() == 18432
    assert found["Net"] == found["Global"] == {"aten.convolution": 15552, "aten.addmm": 2880}
    assert found["Net.conv"] == {"aten.convolution": 15552}


def test_gradients_that_are_computed_are_counted() -> None:
    with FlopCounterMode(display=False) as counter:
        Net()(pullback.ones(2, 3, 6, 6)).sum().backward()
    assert counter.get_total_flops() == 18432 + 15552 + 2 * 2880


def test_outside_of_the_block_nothing_is_counted() -> None:
    counter = FlopCounterMode(display=False)
    with counter:
        pass
    pullback.ones(2, 2) @ pullback.ones(2, 2)
    assert counter.get_flop_counts() == {"Global": {}}


def test_the_table_shows_shares() -> None:
    with FlopCounterMode(display=False) as counter:
        Net()(pullback.ones(2, 3, 6, 6))
    assert counter.get_table(1).splitlines() == [
        "Module                 FLOP    % Total",
        "------------------  -------  ---------",
        "Net                 18.432K    100.00%",
        "- aten.convolution  15.552K     84.38%",
        "- aten.addmm         2.880K     15.62%",
    ]
