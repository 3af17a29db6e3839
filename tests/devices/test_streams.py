"""Backward on the streams of forward, with the waits that order needs: checked on the stand-in device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pullback
from pullback.autograd import graph
from tests.devices.fake_streams import DEFAULT, FakeStream, Watch, on, watched


@pytest.fixture
def watch() -> Iterator[Watch]:
    graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    with watched() as watch:
        yield watch
    graph.set_warn_on_accumulate_grad_stream_mismatch(True)


def test_the_watch_finds_what_was_not_waited_for(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake") * 2
    with on(side):
        y = x * 3
    assert watch.wrong == ["side reads what may not be made yet in default"]
    watch.wrong.clear()
    x.mul_(2)
    assert watch.wrong == ["default writes over what may still be read in side"]
    watch.wrong.clear()
    DEFAULT.wait_stream(side)
    (y * 2).sum()
    assert watch.wrong == []


def test_the_watch_finds_memory_that_goes_back_too_early(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake") * 2
    side.wait_stream(DEFAULT)
    with on(side):
        _ = x * 3
    del x
    assert watch.wrong == ["default gets memory back that may still be read in side"]


def test_a_node_runs_on_the_stream_of_its_operation(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake", requires_grad=True)
    a = x * 2
    side.wait_stream(DEFAULT)
    with on(side):
        b = a.exp()
    DEFAULT.wait_stream(side)
    loss = (b * 3).sum()
    watch.done.clear()
    loss.backward()
    assert set(watch.done) == {"default", "side"}
    assert watch.done[-1] == "default"
    x.grad.sum()
    assert watch.wrong == []


def branches(x: pullback.Tensor, streams: list[FakeStream]) -> tuple[pullback.Tensor, list[pullback.Tensor]]:
    """As many branches as there are streams, each on its own, that meet on the current one; and what must live on."""
    results = []
    for number, stream in enumerate(streams):
        stream.wait_stream(DEFAULT)
        with on(stream):
            results.append((x * (number + 1)).sin() * x)
    for stream in streams:
        DEFAULT.wait_stream(stream)
    return sum(results[1:], results[0]), [x, *results]


def test_gradients_of_branches_meet_in_order(watch: Watch) -> None:
    streams = [FakeStream(f"side {n}") for n in range(3)]
    x = pullback.ones(3, device="fake", requires_grad=True)
    total, held = branches(x * 1.0, streams)
    total.sum().backward()
    expected = pullback.ones(3, requires_grad=True)
    branches(expected * 1.0, [FakeStream("")] * 3)[0].sum().backward()
    assert (x.grad * 1).tolist() == pytest.approx(expected.grad.tolist())
    assert {"side 0", "side 1", "side 2"} <= set(watch.done)
    assert watch.wrong == [], held


def test_calling_stream_waits_and_is_chosen_afterwards(watch: Watch) -> None:
    side, other = FakeStream("side"), FakeStream("other")
    x = pullback.ones(3, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        loss = (x * x).sum()
    other.wait_stream(side)
    with on(other):
        loss.backward()
        watch.done.clear()
        x.grad.sum()
        assert watch.done[-1] == "other"
    assert watch.wrong == []


def test_calling_stream_waits_for_a_leaf_two_streams_away(watch: Watch) -> None:
    first, second = FakeStream("first"), FakeStream("second")
    x = pullback.ones(3, device="fake", requires_grad=True)
    first.wait_stream(DEFAULT)
    with on(first):
        y = x.exp()
    second.wait_stream(first)
    with on(second):
        loss = y.sin().sum()
    DEFAULT.wait_stream(second)
    watch.waits.clear()
    loss.backward()
    assert watch.waits[:3] == [("second", "default"), ("first", "second"), ("default", "first")]
    x.grad.sum()
    assert watch.wrong == []


def test_gradients_that_are_returned_can_be_used_at_once(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        y = x.exp()
        loss = y.sin().sum()
    DEFAULT.wait_stream(side)
    gradients = pullback.autograd.grad(loss, (x, y))
    assert sum(g.sum() for g in gradients).isfinite().item()
    assert watch.wrong == []


def test_second_derivatives_run_on_their_streams(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.full((3,), 2.0, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        y = x**3
    DEFAULT.wait_stream(side)
    (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    watch.done.clear()
    (second,) = pullback.autograd.grad(first.sum(), x)
    assert "side" in watch.done
    assert (second * 1).tolist() == [12.0] * 3
    assert watch.wrong == []


def test_custom_functions_fused_layers_and_in_place_operations_keep_their_stream(watch: Watch) -> None:
    class Double(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: pullback.Tensor) -> pullback.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, grad: pullback.Tensor) -> pullback.Tensor:
            return grad * 2

    side = FakeStream("side")
    layer = pullback.nn.Linear(3, 2).to("fake")
    x = pullback.ones(4, 3, device="fake")
    side.wait_stream(DEFAULT)
    with on(side):
        y = Double.apply(layer(x))
        y[0].mul_(2)
        loss = y.sum()
    DEFAULT.wait_stream(side)
    watch.done.clear()
    loss.backward()
    assert "side" in watch.done
    assert (layer.bias.grad * 1).tolist() == [10.0, 10.0]
    assert watch.wrong == []


def test_a_leaf_accumulates_on_the_stream_where_it_was_first_used(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        kept = x * 1  # its graph keeps the AccumulateGrad
    loss = (x * 2).sum()
    graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    with pytest.warns(UserWarning, match="AccumulateGrad node's stream does not match the stream of the node"):
        loss.backward()
    extra = graph.get_gradient_edge(x).node.extra
    assert extra is not None, kept
    assert extra.stream is side
    assert (x.grad * 1).tolist() == [2.0] * 3
    assert watch.wrong == []


def test_an_error_in_backward_puts_the_stream_back(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        y = x * 2

        def fail(gradient: pullback.Tensor) -> None:
            raise KeyError("no")

        y.register_hook(fail)
    DEFAULT.wait_stream(side)
    with pytest.raises(KeyError, match="no"):
        y.sum().backward()
    watch.done.clear()
    x.detach() * 2
    assert set(watch.done) == {"default"}


def test_steps_of_backward_leave_the_stream_to_the_caller(watch: Watch) -> None:
    side = FakeStream("side")
    x = pullback.ones(3, device="fake", requires_grad=True)
    side.wait_stream(DEFAULT)
    with on(side):
        y = (x * 2).exp()
    DEFAULT.wait_stream(side)
    for _ in y.sum().backward_steps():
        watch.done.clear()
        x.detach() * 2
        assert set(watch.done) == {"default"}
    assert (x.grad * 1).isfinite().all().item()
    assert watch.wrong == []
