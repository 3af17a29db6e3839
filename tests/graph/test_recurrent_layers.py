"""A recurrent layer is one node to the engine and PyTorch's chain of steps to who looks. See Note [Fused nodes]."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn

KINDS = ["RNN", "GRU", "LSTM"]


def layer(kind: str, packed: bool = False) -> tuple[list[Any], list[Any]]:
    """What a layer returns, and the leaves behind it."""
    pullback.manual_seed(0)
    network = getattr(nn, kind)(3, 2, dtype=pullback.float64)
    x = pullback.randn(3, 2, 3, dtype=pullback.float64, requires_grad=True)
    given: Any = nn.utils.rnn.pack_padded_sequence(x, [3, 1]) if packed else x
    output, states = network(given)
    results = [output.data if packed else output, *(states if kind == "LSTM" else (states,))]
    return results, [x, *network.parameters()]


def nodes(results: list[Any]) -> list[Any]:
    """All nodes behind results, each when it is first reached."""
    seen = [t.grad_fn for t in results]
    for node in seen:
        seen += [to for to, _ in node.next_functions if to is not None and to not in seen]
    return list(dict.fromkeys(seen))


def loss(results: list[Any]) -> Any:
    return sum(t.sin().sum() for t in results)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_looking_changes_no_gradient(kind: str, packed: bool) -> None:
    results, leaves = layer(kind, packed)
    expected = pullback.autograd.grad(loss(results), leaves)
    results, leaves = layer(kind, packed)
    assert len(nodes(results)) > 20
    for actual, wanted in zip(pullback.autograd.grad(loss(results), leaves), expected, strict=True):
        pullback.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("wanted", [1, 2, None])
@pytest.mark.parametrize("kind", KINDS)
def test_looking_while_a_pass_runs_lets_it_go_on(kind: str, wanted: int | None) -> None:
    results, leaves = layer(kind)
    expected = pullback.autograd.grad(loss(results), leaves[:wanted])
    results, leaves = layer(kind)
    results[0].register_hook(lambda grad: (nodes(results), None)[1])
    for actual, value in zip(pullback.autograd.grad(loss(results), leaves[:wanted]), expected, strict=True):
        pullback.testing.assert_close(actual, value)


def test_nobody_pays_who_does_not_look() -> None:
    results, _ = layer("GRU")
    loss(results).backward()
    assert results[0].grad_fn.name() == "StackBackward0"
    assert results[0].grad_fn.extra is None


def test_the_final_state_is_the_last_step() -> None:
    results, _ = layer("RNN")
    output, hidden = (t.grad_fn for t in results)
    assert hidden.next_functions == (output.next_functions[-1],)
    assert hidden.next_functions[0][0].name() == "TanhBackward0"


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_on_steps_run_once_and_in_the_reverse_order_of_the_steps(kind: str) -> None:
    results, _ = layer(kind)
    order: list[Any] = []
    steps = [node for node in nodes(results) if node.name() == "AddmmBackward0"]
    for node in steps:
        node.register_hook(lambda inputs, outputs, node=node: order.append(node))
    loss(results).backward()
    assert order == sorted(steps, key=lambda node: -node.sequence_nr)
    assert len(order) == 4


def test_a_hook_on_the_layer_sees_the_gradients_of_its_outputs_alone() -> None:
    results, _ = layer("LSTM")
    seen: list[Any] = []
    results[0].grad_fn.register_prehook(lambda grads: seen.append([tuple(g.shape) for g in grads]))
    results[0].grad_fn.register_hook(lambda inputs, outputs: seen.append([tuple(g.shape) for g in inputs]))
    loss(results).backward()
    assert seen == [[(3, 2, 2)], [(2, 2)] * 3]


def test_a_hook_on_a_step_replaces_the_gradient_of_what_came_before() -> None:
    results, (x, *_) = layer("RNN")
    last = results[1].grad_fn.next_functions[0][0]
    last.register_hook(lambda inputs, outputs: (inputs[0] * 0,))
    results[1].sum().backward()
    assert x.grad.count_nonzero() == 0


def test_steps_show_what_they_saved() -> None:
    results, _ = layer("RNN")
    first = results[0].grad_fn.next_functions[0][0]
    pullback.testing.assert_close(first._saved_result, results[0][0])
    product = first.next_functions[0][0].next_functions[0][0]
    assert product._saved_mat1.equal(pullback.zeros(2, 2, dtype=pullback.float64))


def test_the_steps_of_a_released_layer_are_seen_and_refuse_to_run() -> None:
    results, _ = layer("GRU")
    total = loss(results)
    total.backward()
    assert len(nodes(results)) > 20
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


def test_a_step_notices_that_a_weight_was_modified_before_it_was_looked_at() -> None:
    results, leaves = layer("RNN")
    with pullback.no_grad():
        leaves[2].mul_(2)
    nodes(results)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss(results).backward()


def test_the_gradient_at_a_step_can_be_asked_for() -> None:
    results, _ = layer("GRU")
    edge = pullback.autograd.graph.GradientEdge(results[0].grad_fn.next_functions[1][0], 0)
    (grad,) = pullback.autograd.grad(results[0].sum(), [edge])
    assert grad.shape == (2, 2)


def test_steps_are_differentiated_again() -> None:
    def second(look: bool) -> Any:
        results, leaves = layer("LSTM")
        if look:
            nodes(results)
        (first,) = pullback.autograd.grad(loss(results), leaves[:1], create_graph=True)
        return pullback.autograd.grad(first.pow(2).sum(), leaves[1:3])

    for actual, wanted in zip(second(True), second(False), strict=True):
        pullback.testing.assert_close(actual, wanted)


def test_saved_tensor_hooks_get_what_the_steps_save() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tuple(tensor.shape))
        return tensor

    with pullback.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        layer("RNN")
    assert packed == [(6, 3), (3, 2), *[(2, 2)] * 8]


def test_an_lstm_of_float32_is_one_node_as_in_pytorch() -> None:
    output, _ = nn.LSTM(3, 2)(pullback.ones(4, 1, 3))
    node = output.grad_fn
    assert node.name() == "MkldnnRnnLayerBackward0"
    assert node._saved_result0.equal(output)
    assert (node._saved_hidden_size, node._saved_reverse, node._saved_train, node._saved_mode) == (2, False, True, 2)
