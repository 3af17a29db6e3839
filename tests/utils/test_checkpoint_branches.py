"""A checkpointed function that does something else the second time: where the two runs part is told."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import record_source_lines
from pullback.utils.checkpoint import CheckpointError, checkpoint


class Changing(pullback.nn.Module):
    """Does `first` "more" or "less" than in its later calls."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self.first, self.calls = first, 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        x = x.sin()
        if (self.first == "more") == (self.calls == 1):
            x = x.exp()
        return x.cos()


class Around(pullback.nn.Module):
    """Calls it inside of a module, from which backward does not call it."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return checkpoint(self.inner, x * 2, use_reentrant=False)


@record_source_lines()
def test_fewer_tensors_are_told_with_the_line_that_saved_the_others() -> None:
    loss = Around(Changing("more"))(pullback.ones(2, requires_grad=True)).sum()
    with pytest.raises(CheckpointError, match=r"different number[\s\S]*position 1: .*\(x = x.exp\(\)\), .*x.cos\(\)\)"):
        loss.backward()


@record_source_lines()
def test_a_function_that_does_the_same_is_not_warned_about() -> None:
    layer = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.GELU(), pullback.nn.Linear(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Around(layer)(pullback.ones(3, 2, requires_grad=True)).sum().backward()


@record_source_lines(False)
def test_without_source_lines_the_counts_are_told() -> None:
    loss = Around(Changing("more"))(pullback.ones(2, requires_grad=True)).sum()
    with pytest.raises(CheckpointError, match=r"during recomputation: 2\.\nPass debug=True"):
        loss.backward()
