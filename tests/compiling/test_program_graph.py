"""A program as an fx.Graph: it gives what the program gives."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback
from pullback import nn
from pullback.compiling.explaining import explain


def test_graph_of_a_program_computes_forward_and_backward() -> None:
    layer = nn.Linear(3, 2)
    x = pullback.arange(12.0).reshape(4, 3).requires_grad_()
    explanation = explain(lambda x: nn.functional.softmax(layer(x), -1))(x)
    forward, backward = explanation.forward_program, explanation.backward_program
    assert forward is not None
    assert backward is not None
    assert explanation.entry is not None
    by_shape = {tuple(tensor.shape): tensor for tensor in (x, layer.weight, layer.bias)}
    given = [by_shape[tuple(place.value.shape)] for place in explanation.entry.inputs]
    result, *kept = forward(*[tensor.detach().numpy() for tensor in given])
    expected = nn.functional.softmax(layer(x), -1)
    np.testing.assert_allclose(result, expected.detach().numpy(), rtol=1e-5)
    gradient = np.array([[1.0, 2.0]] * 4, dtype=np.float32)
    found = backward(*kept, gradient)
    wanted = pullback.autograd.grad(expected, given, pullback.from_numpy(gradient))
    for actual, one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(actual, one.numpy(), rtol=1e-4, atol=1e-5)


def test_nodes_tell_kernels_forms_and_lines() -> None:
    explanation = explain(lambda x: x.exp() + 1)(pullback.ones(2))
    graph = explanation.forward_program
    assert graph is not None
    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    assert [node.name for node in nodes] == ["exp", "add"]
    assert 'exp: "f32[2]"' in graph.print_readable(print_output=False)
    assert "test_program_graph.py" in nodes[0].meta["source"].describe()
    graph.graph.lint()


def test_writes_to_inputs_are_nodes() -> None:
    buffer = pullback.zeros(2)

    def call(x: Any) -> None:
        buffer.add_(x)

    explanation = explain(call)(pullback.ones(2))
    graph = explanation.forward_program
    assert graph is not None
    assert explanation.entry is not None
    arrays = [np.full(2, 5.0, np.float32) for _ in explanation.entry.inputs]
    graph(*arrays)
    assert sorted(array.tolist() for array in arrays) == [[5.0, 5.0], [10.0, 10.0]]


def test_function_that_breaks_is_no_program() -> None:
    explanation = explain(lambda x: x if x.sum() > 0 else -x)(pullback.ones(2))
    assert explanation.forward_program is None
    assert explanation.backward_program is None
