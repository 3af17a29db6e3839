"""The GPU's own kernels, run on the CPU: values and gradients beside the CPU's kernels, and how much is launched."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F
from tests.devices import emulator

pytestmark = pytest.mark.skipif(emulator.COMPILER is None, reason="there is no g++ to compile CUDA's text with")
Call = Callable[..., Any]
ALL = os.environ.get("PULLBACK_GPU_KERNELS") == "all"
"""Whether every kernel is compiled in both dtypes, alone and together with others: `make gpu-kernels`."""
IN_16_BITS = ("linear layer", "layer norm", "cross entropy", "attention of one product")
TARGET = [1, 0, -100, 3, 2]


def target(like: Any) -> Any:
    return pullback.tensor(TARGET, device=like.device)


def attend(x: Any) -> Any:
    """Attention whose operands are parts of one array, heads side by side, as in a transformer."""
    q, k, v = (t.view(2, 5, 2, 4).transpose(1, 2) for t in x.split(8, 2))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 5, 8)


CALLS: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [(2, 3, 4, 4), (4, 3, 3, 3), (4,)]),
    "convolution with steps": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=(1, 0), dilation=(1, 2)), [(2, 3, 7, 6), (4, 3, 3, 2), (4,)],
    ),
    "transposed convolution": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), [(2, 3, 3, 4), (3, 2, 3, 3)],
    ),
    "convolution of points": (lambda x, w: F.conv2d(x, w), [(2, 3, 4, 2), (4, 3, 1, 1)]),
    "convolution of sequences": (lambda x, w, b: F.conv1d(x, w, b, padding=1), [(2, 3, 5), (4, 3, 3), (4,)]),
    "convolution of volumes": (
        lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=(1, 0, 1), dilation=(1, 1, 2)),
        [(2, 3, 4, 5, 4), (4, 3, 2, 2, 2), (4,)],
    ),
    "transposed convolution of volumes": (
        lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=(1, 0, 1), output_padding=(1, 0, 1)),
        [(2, 2, 2, 3, 2), (2, 3, 3, 2, 2)],
    ),
    "convolution by channels": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=3), [(2, 3, 5, 6), (6, 1, 3, 3), (6,)],
    ),
    "convolution of groups": (lambda x, w: F.conv2d(x, w, padding=1, groups=2), [(2, 16, 3, 4), (4, 8, 3, 3)]),
    "transposed convolution of groups": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, groups=2), [(2, 4, 3, 3), (4, 2, 3, 3)],
    ),
    "wide transposed convolution of groups": (
        lambda x, w: F.conv_transpose1d(x, w, stride=2, groups=2), [(2, 24, 3), (24, 2, 6)],
    ),
    "points of groups": (lambda x, w: F.conv1d(x, w, groups=2), [(2, 130, 3), (4, 65, 1)]),
    "max pooling": (lambda x: F.max_pool2d(x, 3, 2, 1), [(2, 3, 7, 6)]),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(4, 3, 2, 4), (3,), (3,)]),
    "batch norm of rows": (lambda x: F.batch_norm(x, None, None, None, None, True), [(6, 3)]),
    "product": (lambda a, b: a.T @ b[:, 1:], [(4, 5), (4, 4)]),
    "batched product": (lambda a, b: a @ b.transpose(1, 2), [(2, 5, 4), (2, 3, 4)]),
    "linear layer": (lambda x, w, b: F.gelu(F.linear(x, w, b)), [(2, 5, 4), (3, 4), (3,)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 2, 5, 4)] * 3),
    "softmax": (lambda x: x.softmax(-1), [(3, 7)]),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (8,), w, b), [(5, 8), (8,), (8,)]),
    "cross entropy": (lambda x: F.cross_entropy(x, target(x)), [(5, 4)]),
    "cross entropy of each": (lambda x: F.cross_entropy(x, target(x), reduction="none"), [(5, 4)]),
    "weighted cross entropy": (lambda x, w: F.cross_entropy(x, target(x), w.detach().abs()), [(5, 4), (4,)]),
    "likelihood of a product": (lambda x: F.nll_loss(x * 2, target(x)), [(5, 4)]),
    "embedding": (lambda w: F.embedding(pullback.tensor([[1, 0], [3, 1]], device=w.device), w, 0), [(4, 3)]),
    "embedding of one": (lambda w: F.embedding(pullback.tensor(2, device=w.device), w), [(4, 3)]),
    "parts of a product": (
        lambda x: sum(part.transpose(0, 1).exp() * k for k, part in enumerate(x.split(4, 2), 1)), [(2, 3, 12)],
    ),
    "attention of one product": (lambda x: attend(x), [(2, 5, 24)]),
    "sums": (lambda x: x.sum() + x.mean((0, 2)).sum() + x.sum((0, 2, 3)).exp().sum(), [(2, 3, 4, 4)]),
    "sums of rows": (lambda x: x.sum(-1) * x.mean((1, 2)).unsqueeze(1), [(2, 3, 8)]),
    "a chain": (lambda x, b, c: ((x * 0.5 + b).tanh() * (x * c).sigmoid() + x).exp(), [(2, 3, 8), (8,), (3, 1)]),
}  # fmt: skip


def run(call: Call, shapes: list[tuple[int, ...]], device: str, dtype: Any) -> list[Any]:
    """Results and gradients, on the CPU, of the third time: what is deferred is one launch then."""
    for _ in range(3):
        pullback.manual_seed(0)
        inputs = [
            pullback.randn(*shape, dtype=pullback.float64).to(dtype).to(device).requires_grad_() for shape in shapes
        ]
        result = call(*inputs)
        (result.double() * (1 + 0.3 * result.detach().double())).sum().backward()
        found = [result.detach(), *[x.grad for x in inputs if x.grad is not None]]
    return [t.cpu().double().numpy() for t in found]


CASES = [(name, pullback.float64) for name in CALLS]
CASES += [(name, pullback.bfloat16) for name in (CALLS if ALL else IN_16_BITS)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_values_and_gradients_are_those_of_the_cpu(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not ALL and name != "a chain":  # calls that wait are compiled together at once, and none of them alone
        monkeypatch.setattr(emulator.emulated.pending, "compiles_at", 1)
    call, shapes = CALLS[name]
    tolerance = 1e-10 if dtype is pullback.float64 else 0.05
    expected, actual = run(call, shapes, "cpu", dtype), run(call, shapes, "emulated", dtype)
    assert len(actual) == len(expected)
    for first, second in zip(expected, actual, strict=True):
        np.testing.assert_allclose(second, first, rtol=tolerance, atol=tolerance * max(1.0, np.abs(first).max()))


LAYERS: dict[str, Callable[..., Any]] = {
    "lstm": pullback.nn.LSTM,
    "gru": pullback.nn.GRU,
    "tanh": pullback.nn.RNN,
    "relu": partial(pullback.nn.RNN, nonlinearity="relu"),
    "gru without biases": partial(pullback.nn.GRU, bias=False),
}


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_recurrent_layers_are_those_of_the_cpu_in_few_launches(kind: str, both_ways: bool) -> None:
    found = {}
    for device in ("cpu", "emulated"):
        pullback.manual_seed(0)
        net = LAYERS[kind](3, 5, batch_first=True, bidirectional=both_ways).double().to(device)
        x = pullback.randn(4, 6, 3, dtype=pullback.float64).to(device).requires_grad_()
        state = pullback.randn(1 + both_ways, 4, 5, dtype=pullback.float64).to(device).requires_grad_()
        emulator.emulated.launches.clear()
        output, final = net(x, (state, state * 2) if kind == "lstm" else state)
        hidden = final[0] * final[1] if kind == "lstm" else final.cos()
        (output.sin().sum() + hidden.sum()).backward()
        found[device] = [output.detach(), hidden.detach(), x.grad, state.grad, *[p.grad for p in net.parameters()]]
    assert sum("meet(counter" in text for text in emulator.emulated.launches) == 2 * (1 + both_ways)
    for first, second in zip(found["cpu"], found["emulated"], strict=True):
        np.testing.assert_allclose(second.cpu().numpy(), first.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", [
    lambda p: pullback.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    lambda p: pullback.optim.SGD(p, lr=0.1, maximize=True),
    lambda p: pullback.optim.AdamW(p, lr=0.1, amsgrad=True),
])  # fmt: skip
def test_steps_of_optimizers_are_those_of_the_cpu_in_one_launch(make: Call) -> None:
    found = {}
    for device in ("cpu", "emulated"):
        weights = [pullback.linspace(-1, 1, n).to(device).requires_grad_() for n in (5, 12)]
        optimizer = make(weights)
        for _ in range(3):
            for weight in weights:
                weight.grad = weight.detach().cos()
            emulator.emulated.pending.flush()
            emulator.emulated.launches.clear()
            optimizer.step()
        found[device] = [w.detach().cpu().numpy() for w in weights]
    assert len(emulator.emulated.launches) == 1
    for first, second in zip(found["cpu"], found["emulated"], strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-6)


def launches_of(step: Callable[[], Any], times: int = 3) -> int:
    for _ in range(times):
        emulator.emulated.pending.flush()
        emulator.emulated.launches.clear()
        step()
    emulator.emulated.pending.flush()
    return len(emulator.emulated.launches)


def test_a_chain_is_one_launch_each_way_and_one_for_the_sum() -> None:
    x = pullback.linspace(-1, 1, 64).to("emulated").requires_grad_()

    def step() -> None:
        y = (x * 0.5 + 0.1).tanh() * (x * 2).sigmoid()
        (y * y + x).exp().sum().backward()
        x.grad = None

    assert launches_of(step) == 3


def test_convolutions_by_channels_are_one_launch_each_way_and_one_for_the_weight() -> None:
    x = pullback.ones(2, 3, 5, 5, device="emulated", requires_grad=True)
    w = pullback.ones(6, 1, 3, 3, device="emulated", requires_grad=True)
    grad = pullback.ones(2, 6, 5, 5, device="emulated")
    assert launches_of(lambda: F.conv2d(x, w, padding=1, groups=3).detach()) == 1
    assert launches_of(lambda: pullback.autograd.grad(F.conv2d(x, w, padding=1, groups=3), (x, w), grad)) == 3


def test_convolutions_of_volumes_are_unfolded_in_one_launch() -> None:
    x, w = pullback.ones(2, 3, 4, 4, 4, device="emulated"), pullback.ones(4, 3, 2, 2, 2, device="emulated")
    assert launches_of(lambda: F.conv3d(x, w)) == 1


def test_what_is_written_later_does_not_change_what_was_computed_before() -> None:
    x = pullback.ones(4, device="emulated")
    for _ in range(3):
        x.fill_(1.0)
        y = x * 2 + 1
        x.add_(5.0)
        assert y.tolist() == [3.0] * 4
        assert x.tolist() == [6.0] * 4


def test_gradients_are_summed_in_the_same_launch() -> None:
    x = pullback.linspace(0, 1, 8).to("emulated").requires_grad_()
    g = pullback.ones(8, device="emulated")

    def step() -> None:
        (x.exp() + x.tanh() + x * 3).backward(g)
        assert np.allclose(x.grad.tolist(), (x.exp() + 1 - x.tanh() ** 2 + 3).tolist())
        x.grad = None

    step()
    assert np.isfinite(x.tolist()).all()


def test_results_that_nobody_holds_are_not_computed() -> None:
    x = pullback.ones(4, device="emulated")

    def step() -> None:
        x.exp()

    assert launches_of(step) == 0


def test_every_call_is_launched_at_once_when_memory_is_shared() -> None:
    pending = emulator.emulated.pending
    x = pullback.ones(4, device="emulated")
    pending.stop()
    try:
        emulator.emulated.launches.clear()
        y = x * 2
        assert len(emulator.emulated.launches) == 1
        assert y.tolist() == [2.0] * 4
    finally:
        pending.is_on = True


def test_a_target_that_is_no_class_is_told() -> None:
    found = emulator.emulated.complaints.found
    x = pullback.zeros(2, 3, device="emulated")
    F.nll_loss(x, pullback.tensor([0, 7], device="emulated"))
    assert found.tolist() == [1, 7, 3, 0]
    found[:] = 0


def test_a_position_out_of_bounds_is_told_without_a_look_at_the_values() -> None:
    library, x = emulator.emulated, pullback.arange(6.0, device="emulated").view(2, 3)
    with library.strict():
        taken = x.gather(1, pullback.tensor([[0, 2], [1, 1]], device="emulated"))
        assert library.complaints.found.tolist() == [0] * 4
        with pytest.raises(IndexError):  # NumPy's own; CuPy goes on
            x.index_select(1, pullback.tensor([0, 3], dtype=pullback.int32, device="emulated"))
    assert taken.tolist() == [[0.0, 2.0], [4.0, 4.0]]
    assert library.complaints.found.tolist() == [3, 3, 3, 1]
    library.complaints.found[:] = 0


def test_threads_of_a_warp_exchange_values() -> None:
    source = 'extern "C" __global__ void run(float *out)\n{ out[threadIdx.x] = __shfl_xor_sync(~0u, (float)threadIdx.x, 1); }'
    out = np.zeros(32, np.float32)
    emulator.emulated.compiled(source)((1,), (32,), (out,))
    assert out.tolist() == [float(n ^ 1) for n in range(32)]
