"""A pass inside of a node looks at the node's own graph, not at all that was recorded before."""

from __future__ import annotations

import pytest

import pullback
import pullback.nn.functional as F
from pullback.backend.configuration import compiled_modules
from pullback.engine.graph_task import GraphTask


def nodes_looked_at(layers: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many nodes the passes of a double backward through so many layers count."""
    counted = 0
    count = GraphTask.count_dependencies

    def counting(self: GraphTask, *args: object) -> None:
        nonlocal counted
        count(self, *args)  # type: ignore[arg-type]  # handed on
        counted += len(self.dependencies)

    x = pullback.arange(4.0, requires_grad=True)
    y = x
    for _ in range(layers):
        y = F.softplus(F.layer_norm(y, (4,)))
    (slope,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    with monkeypatch.context() as patched:
        patched.setattr(GraphTask, "count_dependencies", counting)
        slope.sum().backward()
    return counted


@pytest.mark.skipif("pullback.engine.graph_task" in compiled_modules(), reason="methods of a compiled class stay")
def test_a_double_backward_looks_at_each_layer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (nodes_looked_at(layers, monkeypatch) for layers in (10, 40))
    assert many < 5 * few
